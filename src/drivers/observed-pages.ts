import type { ConsoleMessage, Page, Request, Response } from 'playwright-core';
import type { Observation, ObserveRequest, PageReport } from './connector.js';
import { isError } from '../shared/globals.js';
import { NotedCalls, withoutNotes } from '../noted-calls/noted-calls.js';

interface AnyEmitter {
  on(event: string, listener: (value: never) => void): unknown;
  off(event: string, listener: (value: never) => void): unknown;
}

// The parts of Playwright's objects that those of Puppeteer have, too.
type AnyPage = Pick<Page, 'url' | 'bringToFront'> & {
  screenshot(options: { fullPage: true }): Promise<Uint8Array>;
};
type AnyMessage = Pick<ConsoleMessage, 'text'> & {
  type(): string;
  location(): { url?: string; lineNumber?: number };
};
type AnyRequest = Pick<Request, 'method' | 'url' | 'failure'>;
type AnyResponse = Pick<Response, 'status'> & { request(): AnyRequest };

/** The objects that the scope of an observation names. */
type Handles = Readonly<Record<ObserveRequest['scope'], object>>;

/** The first HTTP status of a failed request. */
const FIRST_FAILURE = 400;

/** Pages whose console messages, errors and failed requests are reported. */
export class ObservedPages implements Observation {
  readonly #scope: ObserveRequest['scope'];
  readonly #onReport: ObserveRequest['onReport'];
  readonly #onCall: ObserveRequest['onCall'];
  readonly #pages = new Set<AnyPage>();
  readonly #undo: (() => void)[] = [];
  #calls: NotedCalls | undefined;

  constructor({ scope, onReport, onCall }: Omit<ObserveRequest, 'handles'>) {
    this.#scope = scope;
    this.#onReport = onReport;
    this.#onCall = onCall;
  }

  readonly add = (page: AnyPage | null): void => {
    if (!page || this.#pages.has(page)) return;
    this.#pages.add(page);
    this.#noteCallsOf(page);
    this.listen(page, 'close', () => this.#pages.delete(page));
    if (this.#scope === 'page') this.listen(page, 'popup', this.add);
    if (this.#onReport) this.#listenToReports(page, this.#onReport);
  };

  /** Notes the calls of the library until `stop`, if they are asked for. Call it before `add`. */
  noteCalls(library: 'playwright' | 'puppeteer', handles: Partial<Handles>): void {
    const [scope, onCall, target] = [this.#scope, this.#onCall, handles[this.#scope]];
    if (!onCall || !target) return;
    const calls = new NotedCalls({ library, scope, target, onCall });
    this.#calls = calls;
    this.#undo.push(() => calls.stop());
  }

  /** Finds the classes of objects whose calls may be noted. */
  learn(...objects: readonly object[]): void {
    for (const object of objects) this.#calls?.learn(object);
  }

  #noteCallsOf(page: AnyPage): void {
    const calls = this.#calls;
    calls?.addPage(page);
    if (calls?.canListenToDialogs)
      this.listen(page, 'dialog', (dialog: object) => calls.addDialog(page, dialog));
  }

  /** @param source An object with events, of either library: their types have nothing in common. */
  listen(source: object, event: string, listener: (value: never) => void): void {
    const emitter = source as AnyEmitter;
    emitter.on(event, listener);
    this.#undo.push(() => emitter.off(event, listener));
  }

  screenshots(): (() => Promise<Uint8Array>)[] {
    const take = async (page: AnyPage) => {
      // A page behind others is not drawn, and its screenshot would never be taken.
      await page.bringToFront();
      return page.screenshot({ fullPage: true });
    };
    return [...this.#pages].map((page) => () => withoutNotes(() => take(page)));
  }

  stop(): void {
    this.#undo.splice(0).forEach((undo) => undo());
  }

  #listenToReports(page: AnyPage, onReport: (report: PageReport) => void): void {
    const report = (type: PageReport['type'], facts: Partial<PageReport>) =>
      onReport({ type, page: page.url(), ...facts });
    const onCrash = () => report('page-error', { text: 'The page crashed.' });
    this.listen(page, 'console', (message: AnyMessage) => report('console', factsOf(message)));
    this.listen(page, 'pageerror', (error: unknown) => report('page-error', { text: describe(error) }));
    // Playwright and Puppeteer have different names for the event.
    this.listen(page, 'crash', onCrash);
    this.listen(page, 'error', onCrash);
    this.listen(page, 'requestfailed', (request: AnyRequest) => {
      const reason = request.failure()?.errorText ?? 'unknown reason';
      report('request-failed', { method: request.method(), url: request.url(), reason });
    });
    this.listen(page, 'response', (response: AnyResponse) => {
      const status = response.status();
      if (status < FIRST_FAILURE) return;
      const request = response.request();
      report('request-failed', { method: request.method(), url: request.url(), status });
    });
  }
}

function factsOf(message: AnyMessage): Partial<PageReport> {
  const { url, lineNumber } = message.location();
  const place = url ? { url, ...(lineNumber !== undefined && { line: lineNumber + 1 }) } : {};
  return { level: message.type(), text: message.text(), ...place };
}

/** A page can throw any value. */
function describe(error: unknown): string {
  if (!isError(error)) return String(error);
  const { stack = '', message } = error;
  // The stack of some errors has no message.
  return stack.includes(message) ? stack : `${error.name}: ${message}\n${stack}`;
}
