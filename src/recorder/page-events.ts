import { clock } from '../shared/clock.js';
import type { CdpSession } from '../wire/cdp-client.js';
import type { EventName, EventParams } from '../wire/message.js';
import { recordOf } from '../shared/json.js';
import { BINDING, type RecorderWorld } from './masks/mask-script.js';
import type { Timeline, TimelineEntry } from './timeline.js';

/** Requests, and documents, that are kept until they end or appear. Above that, the oldest are dropped. */
const MAX_KEPT = 500;

/** Milliseconds after which a request without a response is shown at a failure, and the most of them. */
const LONG_WAIT = 500;
const MOST_WAITING = 10;

type Handlers = { readonly [Name in EventName]?: (params: EventParams<Name>, session: string) => void };

/** An event of the recorded browser, which is what the protocol says. */
export type RecordedEvent = {
  [Name in EventName]: {
    readonly method: Name;
    readonly params: EventParams<Name>;
    readonly sessionId: string | undefined;
  };
}[EventName];

/** Adds the CDP events of pages to a timeline. */
export class PageEvents {
  readonly #timeline: Timeline;
  readonly #world: RecorderWorld;
  /** When the event arrived that is being handled. */
  #at = 0;
  readonly #startedAt = Date.now();
  /** URLs and targets by CDP session. */
  readonly #pages = new Map<string, { readonly url: string; readonly targetId: string }>();
  /** By request id, until they end. */
  readonly #requests = new Map<string, SentRequest>();
  /** How the requests of documents ended, by loader id, until a frame shows the document. */
  readonly #documents = new Map<string, string>();

  /** @param world Where its script runs. */
  constructor(timeline: Timeline, world: RecorderWorld) {
    this.#timeline = timeline;
    this.#world = world;
  }

  /** Enables the CDP events of a page that the timeline needs. */
  enable(page: CdpSession): void {
    const timeline = this.#timeline;
    if (timeline.includes('console')) page.send('Log.enable');
    // For failed requests and the status of navigations. Chromium needs to keep no bodies.
    if (timeline.includes('network') || timeline.includes('page'))
      page.send('Network.enable', { maxTotalBufferSize: 0, maxResourceBufferSize: 0 });
    this.enableScripts(page);
  }

  /**
   * Runs the scripts in a page, or in a frame of another site. They always run: `RecordedPages` needs interactions to choose
   * the page, and the times of its pictures, and needs the list of what the pictures may not show.
   */
  enableScripts(page: CdpSession): void {
    const { name: worldName, script: maskScript } = this.#world;
    // Without it, scripts do not run in documents that have none of their own.
    page.send('Runtime.enable');
    page.send('Runtime.addBinding', { name: BINDING, executionContextName: worldName });
    const source = `${maskScript};${INTERACTION_SCRIPT}`;
    const script = { source, worldName, runImmediately: true };
    page.send('Page.addScriptToEvaluateOnNewDocument', script);
  }

  get names(): readonly EventName[] {
    return Object.keys(this.#handlers) as EventName[];
  }

  /** @param at When the event arrived (`clock.now()`). */
  add({ method, params, sessionId = '' }: RecordedEvent, at: number): void {
    // After `enable`, Chromium repeats the events of the past.
    if (Number((params as { timestamp?: unknown }).timestamp) < this.#startedAt && REPEATED.has(method))
      return;
    this.#at = at;
    this.#handlers[method]?.(params as never, sessionId);
  }

  /** Adds the requests that have waited for a response since long: one of them can be why something failed. */
  addWaiting(): void {
    this.#at = clock.now();
    const isDue = ({ at, isAnswered }: SentRequest) => !isAnswered && this.#at - at > LONG_WAIT;
    const waiting = [...this.#requests.values()].filter(isDue).slice(0, MOST_WAITING);
    for (const { url, at } of waiting)
      this.#add(
        'request-failed',
        withoutSecrets(url),
        `no response yet, after ${((this.#at - at) / 1000).toFixed(1)} s`,
      );
  }

  #add(kind: TimelineEntry['kind'], text: string, status?: string): void {
    this.#timeline.add(kind, text, status, this.#at);
  }

  /** Adds a request whose response has an error status, or that has no response. */
  #addIfFailed(url: string, status: string | undefined): void {
    if (status !== undefined && !/^[123]/.test(status)) this.#add('request-failed', url, status);
  }

  readonly #handlers: Handlers = {
    'Target.attachedToTarget': ({ sessionId, targetInfo: { url, targetId } }) => {
      this.#pages.set(sessionId, { url, targetId });
      this.#add('page-opened', withoutSecrets(url));
    },
    'Target.detachedFromTarget': ({ sessionId = '' }) => {
      this.#add('page-closed', withoutSecrets(this.#pages.get(sessionId)?.url ?? ''));
      this.#pages.delete(sessionId);
    },
    'Page.frameNavigated': ({ frame }, session) => {
      const { loaderId = '' } = frame;
      const status = this.#documents.get(loaderId);
      this.#documents.delete(loaderId);
      // A document that cannot be loaded is replaced by a page of Chromium's own.
      const url = withoutSecrets(frame.unreachableUrl ?? frame.url);
      if (frame.parentId !== undefined) return this.#addIfFailed(url, status);
      this.#pages.set(session, { url: frame.url, targetId: frame.id });
      this.#add('navigation', url, status);
    },
    'Network.requestWillBeSent': (params, session) => {
      const { requestId, request, frameId, type, redirectResponse: from } = params;
      keep(this.#requests, requestId, { url: request.url, at: this.#at });
      // The main frame has the id of its page.
      if (!from || type !== 'Document' || frameId !== this.#pages.get(session)?.targetId) return;
      const text = `${withoutSecrets(from.url)} → ${withoutSecrets(request.url)}`;
      this.#add('navigation', text, statusOf(from));
    },
    'Network.responseReceived': ({ type, requestId, loaderId = '', response }) => {
      const request = this.#requests.get(requestId);
      if (request) request.isAnswered = true;
      // Chromium requests the icon by itself: many sites have none.
      if (!response.url.startsWith('http') || response.url.endsWith('/favicon.ico')) return;
      const status = statusOf(response);
      if (type === 'Document') keep(this.#documents, loaderId, status);
      else this.#addIfFailed(withoutSecrets(response.url), status);
    },
    'Network.loadingFinished': ({ requestId }) => {
      this.#requests.delete(requestId);
    },
    'Network.loadingFailed': ({ type, requestId, errorText, canceled }) => {
      const url = this.#requests.get(requestId)?.url ?? 'a request';
      this.#requests.delete(requestId);
      // A navigation cancels the requests of the previous document.
      if (canceled === true) return;
      // The request of a document has the id of its loader.
      if (type === 'Document') keep(this.#documents, requestId, errorText);
      else this.#add('request-failed', withoutSecrets(url), errorText);
    },
    'Runtime.consoleAPICalled': (params) => {
      const text = params.args.map(({ value, description }) => String(value ?? description ?? ''));
      this.#add('console', `${params.type}: ${text.join(' ')}`);
    },
    'Log.entryAdded': ({ entry }) => {
      // The timeline has an entry of its own for each failed request.
      if (entry.source === 'network' && this.#timeline.includes('network')) return;
      this.#add('console', `${entry.level}: ${entry.text} ${withoutSecrets(entry.url ?? '')}`);
    },
    'Runtime.exceptionThrown': (params) => {
      const { text, exception } = params.exceptionDetails;
      this.#add('page-error', exception?.description ?? text);
    },
    'Page.javascriptDialogOpening': ({ type, message }) => {
      this.#add('dialog', `${type}: ${message}`);
    },
    'Page.javascriptDialogClosed': ({ result }) => {
      this.#add('dialog', result === true ? 'It was accepted.' : 'It was dismissed.');
    },
    'Page.downloadWillBegin': ({ url = '', suggestedFilename = '' }) => {
      this.#add('download', `${suggestedFilename} ${withoutSecrets(url)}`.trim());
    },
    'Inspector.targetCrashed': () => this.#add('page-error', 'The page crashed.'),
    'Runtime.bindingCalled': ({ payload }) => {
      const { kind, text } = recordOf(payload);
      if ((kind === 'click' || kind === 'key') && typeof text === 'string') this.#add(kind, text);
    },
  };
}

interface SentRequest {
  readonly url: string;
  /** When it was sent (`clock.now()`). */
  readonly at: number;
  isAnswered?: boolean;
}

function statusOf({ status, statusText }: { status: number; statusText: string }): string {
  return `${status} ${statusText}`.trim();
}

/** Adds a value. Drops the oldest one if there are too many. */
function keep<Value>(values: Map<string, Value>, key: string, value: Value): void {
  values.set(key, value);
  if (values.size > MAX_KEPT) values.delete(values.keys().next().value!);
}

/** Events that Chromium repeats after `Runtime.enable`. */
const REPEATED = new Set(['Runtime.consoleAPICalled', 'Runtime.exceptionThrown']);

/** Query parameters with such names may hold secrets. */
const SECRET = /jwt|token|key|secret|passw|auth|sig|session|code/i;

/** A `data:` URL holds a whole document. */
const MAX_DATA_URL = 60;

/** Removes the user, the password and the values of secret parameters from a URL. */
export function withoutSecrets(text: string): string {
  if (!URL.canParse(text)) return text;
  const url = new URL(text);
  if (url.protocol === 'data:') return text.slice(0, MAX_DATA_URL);
  if (url.username !== '') url.username = '';
  if (url.password !== '') url.password = '';
  const query = [...url.searchParams];
  // At once: each change would write the whole URL, whose length a page chooses.
  if (query.some(([name]) => SECRET.test(name)))
    url.search = String(
      new URLSearchParams(query.map(([name, value]) => [name, SECRET.test(name) ? 'hidden' : value])),
    );
  return url.href;
}

/**
 * Reports clicks, key presses and other use of the page, by a person or by an automation library. It never reports which
 * keys, which may be a password, and reports the text of buttons and links only. The other kinds are not in the timeline:
 * they show which page is in use, because Chromium does not report which page Playwright brings to the front, and when a
 * picture is due. It reports no text of hidden elements, or of what they are in (`mask-script.ts`).
 */
const INTERACTION_SCRIPT = `(() => {
  if (Object.hasOwn(globalThis, 'isListening')) return;
  Object.defineProperty(globalThis, 'isListening', { value: true });
  const describe = (element) => {
    if (recorderMasks.isHidden(element)) return element.localName;
    const control = element.closest('a, button, summary, [role=button], [role=link]');
    const { localName, id } = control ?? element;
    const isSecret = recorderMasks.containsHidden(control ?? element);
    const label = isSecret ? '' : element.getAttribute('aria-label') ?? control?.textContent ?? '';
    return (localName + (id && '#' + id) + ' ' + label.trim().slice(0, 60)).trim();
  };
  const report = (kind, event) => {
    const [element] = event.composedPath();
    if (event.isTrusted && element instanceof Element) ${BINDING}(JSON.stringify({ kind, text: describe(element) }));
  };
  const listeners = new Map();
  const listen = (type, listener) => listeners.set(type, listener);
  listen('click', (event) => report('click', event));
  let lastKey = -Infinity;
  listen('keydown', (event) => {
    report(event.timeStamp - lastKey > 1000 ? 'key' : 'use', event);
    lastKey = event.timeStamp;
  });
  for (const type of ['pointerdown', 'input', 'focusin']) listen(type, (event) => report('use', event));
  let lastMove = -Infinity;
  for (const type of ['pointermove', 'wheel']) listen(type, (event) => {
    if (event.timeStamp - lastMove < 100) return;
    lastMove = event.timeStamp;
    report('use', event);
  });
  const reportVisibility = () => ${BINDING}(JSON.stringify({ kind: document.visibilityState }));
  listen('visibilitychange', reportVisibility);
  const listenToAll = () =>
    listeners.forEach((listener, type) => addEventListener(type, listener, { capture: true, passive: true }));
  listenToAll();
  // document.open(), with which setContent of the libraries begins, removes all listeners. To add one twice has no effect.
  new MutationObserver(listenToAll).observe(document, { childList: true });
  if (top === globalThis) reportVisibility();
})()`;
