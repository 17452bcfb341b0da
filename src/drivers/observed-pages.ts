import type { ConsoleMessage, Page, Request, Response } from 'playwright-core';
import type { Observation, ObserveRequest, PageReport } from './connector.js';
import { isError } from '../shared/globals.js';

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

/** The first HTTP status of a failed request. */
const FIRST_FAILURE = 400;

/** Pages whose console messages, errors and failed requests are reported. */
export class ObservedPages implements Observation {
  readonly #followsPopups: boolean;
  readonly #onReport: ObserveRequest['onReport'];
  readonly #pages = new Set<AnyPage>();
  readonly #undo: (() => void)[] = [];

  constructor({ scope, onReport }: Pick<ObserveRequest, 'scope' | 'onReport'>) {
    this.#followsPopups = scope === 'page';
    this.#onReport = onReport;
  }

  readonly add = (page: AnyPage | null): void => {
    if (!page || this.#pages.has(page)) return;
    this.#pages.add(page);
    this.listen(page, 'close', () => this.#pages.delete(page));
    if (this.#followsPopups) this.listen(page, 'popup', this.add);
    if (this.#onReport) this.#listenToReports(page, this.#onReport);
  };

  /** @param source An object with events, of either library: their types have nothing in common. */
  listen(source: object, event: string, listener: (value: never) => void): void {
    const emitter = source as AnyEmitter;
    emitter.on(event, listener);
    this.#undo.push(() => emitter.off(event, listener));
  }

  screenshots(): (() => Promise<Uint8Array>)[] {
    return [...this.#pages].map((page) => async () => {
      // A page behind others is not drawn, and its screenshot would never be taken.
      await page.bringToFront();
      return page.screenshot({ fullPage: true });
    });
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
