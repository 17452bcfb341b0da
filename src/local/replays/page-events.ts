import type { CdpEvent } from '../browser/cdp-connection.js';
import { cleanUrl } from './clean-url.js';
import { BINDING, INTERACTION_SCRIPT, readInteraction, WORLD } from './interaction.js';
import type { RecordedPage } from './recorded-page.js';
import type { Timeline } from './timeline.js';

/** Requests whose URLs are remembered until they end: the oldest are forgotten. */
const MOST_REQUESTS = 500;

/** Enters into a timeline what Chromium tells of its pages. */
export class PageEvents {
  readonly #timeline: Timeline;
  readonly #startedAt = Date.now();
  /** By CDP session. */
  readonly #pages = new Map<string, string>();
  readonly #requests = new Map<unknown, string>();

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /** Switches on, in a page, what the timeline is to hold. */
  listen(page: RecordedPage): void {
    const timeline = this.#timeline;
    if (timeline.holds('console') || timeline.holds('page')) page.send('Runtime.enable');
    if (timeline.holds('console')) page.send('Log.enable');
    // Only failures are told: no body needs to be kept.
    if (timeline.holds('network'))
      page.send('Network.enable', { maxTotalBufferSize: 0, maxResourceBufferSize: 0 });
    // Always: they also tell which page to follow.
    page.send('Runtime.addBinding', { name: BINDING, executionContextName: WORLD });
    const script = { source: INTERACTION_SCRIPT, worldName: WORLD, runImmediately: true };
    page.send('Page.addScriptToEvaluateOnNewDocument', script);
  }

  add({ method, params, sessionId = '' }: CdpEvent): void {
    // Chromium begins with what it remembers.
    if (Number(params['timestamp']) < this.#startedAt && REMEMBERED.has(method)) return;
    if (method === 'Target.attachedToTarget') this.#onAttached(params as unknown as Attached);
    else if (method === 'Target.detachedFromTarget') this.#onDetached(String(params['sessionId']));
    else if (method === 'Page.frameNavigated') this.#onNavigated(sessionId, params as unknown as Navigated);
    else if (method === 'Network.requestWillBeSent') this.#onRequest(params as unknown as Sent);
    else if (method === 'Network.loadingFinished') this.#requests.delete(params['requestId']);
    else if (method === 'Network.loadingFailed') this.#onFailed(params as unknown as Failed);
    else if (method === 'Runtime.consoleAPICalled') this.#onConsole(params as unknown as Logged);
    else if (method === 'Log.entryAdded') this.#onEntry((params as unknown as Added).entry);
    else if (method === 'Runtime.exceptionThrown') this.#onException(params as unknown as Thrown);
    else if (method === 'Inspector.targetCrashed') this.#timeline.add('page-error', 'The page crashed.');
    else if (method === 'Runtime.bindingCalled') this.#onInteraction(params['payload']);
  }

  #onAttached({ sessionId, targetInfo: { url } }: Attached): void {
    this.#pages.set(sessionId, url);
    this.#timeline.add('page-opened', cleanUrl(url));
  }

  #onDetached(sessionId: string): void {
    this.#timeline.add('page-closed', cleanUrl(this.#pages.get(sessionId) ?? ''));
    this.#pages.delete(sessionId);
  }

  #onNavigated(sessionId: string, { frame: { parentId, url } }: Navigated): void {
    if (parentId !== undefined) return;
    this.#pages.set(sessionId, url);
    this.#timeline.add('navigation', cleanUrl(url));
  }

  #onRequest({ requestId, request: { url } }: Sent): void {
    this.#requests.set(requestId, url);
    if (this.#requests.size > MOST_REQUESTS) this.#requests.delete(this.#requests.keys().next().value);
  }

  #onFailed({ requestId, errorText, canceled }: Failed): void {
    const url = this.#requests.get(requestId) ?? 'a request';
    this.#requests.delete(requestId);
    // A page that moves on cancels what it was loading.
    if (canceled !== true) this.#timeline.add('request-failed', `${errorText} ${cleanUrl(url)}`);
  }

  #onConsole({ type, args }: Logged): void {
    const text = args.map(({ value, description }) => String(value ?? description ?? '')).join(' ');
    this.#timeline.add('console', `${type}: ${text}`);
  }

  #onEntry({ level, text, url }: Added['entry']): void {
    this.#timeline.add('console', `${level}: ${text} ${cleanUrl(url ?? '')}`);
  }

  #onException({ exceptionDetails: { text, exception } }: Thrown): void {
    this.#timeline.add('page-error', exception?.description ?? text);
  }

  #onInteraction(payload: unknown): void {
    const told = readInteraction(payload);
    if (told) this.#timeline.add(told.kind, told.text);
  }
}

/** Events that Chromium sends again to whoever begins to listen. */
const REMEMBERED = new Set(['Runtime.consoleAPICalled', 'Runtime.exceptionThrown']);

interface Attached {
  readonly sessionId: string;
  readonly targetInfo: { readonly url: string };
}

interface Navigated {
  readonly frame: { readonly parentId?: string; readonly url: string };
}

interface Sent {
  readonly requestId: string;
  readonly request: { readonly url: string };
}

interface Failed {
  readonly requestId: string;
  readonly errorText: string;
  readonly canceled?: boolean;
}

interface Logged {
  readonly type: string;
  readonly args: readonly { readonly value?: unknown; readonly description?: string }[];
}

interface Added {
  readonly entry: { readonly level: string; readonly text: string; readonly url?: string };
}

interface Thrown {
  readonly exceptionDetails: {
    readonly text: string;
    readonly exception?: { readonly description?: string };
  };
}
