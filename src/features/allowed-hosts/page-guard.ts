import { raceTimeout } from '../../shared/abort.js';
import type { CdpClient, EventListeners, Target } from '../../wire/cdp-client.js';
import { freeLoggedObjects } from '../../wire/logged-objects.js';
import type { Sessions } from '../../wire/layer.js';
import type { Preparer } from '../../wire/waiting-targets.js';

/** Time in ms for the last reports of pages. */
const FLUSH_TIMEOUT = 500;
/** Most refused navigations whose second report can follow. */
const MOST_NAVIGATIONS = 100;
/** Most open requests of workers whose URLs are known. */
const MOST_REQUESTS = 10_000;
/** The constructors of WebRTC, which sends UDP packets past every proxy. */
const WEBRTC = ['RTCPeerConnection', 'webkitRTCPeerConnection'];
/** Takes them from a page. */
const NO_WEBRTC = WEBRTC.map((name) => `delete globalThis.${name};`).join(' ');
/** How Chromium reports a request to a host that is not allowed. */
export const REFUSED = 'net::ERR_PROXY_CONNECTION_FAILED';

/** How Chromium logs that WebTransport and a WebSocket failed: their URL is only in the text. */
const NO_TRANSPORT = /^Failed to establish a connection to (https:\S+): net::/;
const NO_WEBSOCKET = /'(wss?:[^']*)'/;

/** Takes WebRTC from all pages before their first script, and reports the requests that failed because of the limit. */
export class PageGuard implements Preparer {
  readonly #cdp: () => CdpClient;
  readonly #onRefused: (url: string) => void;
  readonly isMeant: (target: Target) => boolean;
  readonly #sessions: Sessions;
  /** The URLs of open requests of workers, by session and request. */
  readonly #requests = new Map<string, string>();
  /** The ids of refused navigations that were reported. */
  readonly #navigations = new Set<string>();

  /** @param isMeant False for pages that are not of the lease. */
  constructor(
    cdp: () => CdpClient,
    sessions: Sessions,
    isMeant: (target: Target) => boolean,
    onRefused: (url: string) => void,
  ) {
    this.#cdp = cdp;
    this.#sessions = sessions;
    this.isMeant = isMeant;
    this.#onRefused = onRefused;
  }

  readonly listeners: EventListeners = {
    ...freeLoggedObjects(() => this.#cdp()),
    'Log.entryAdded': ({ entry: { text, url } }, session = '') => {
      const transport = NO_TRANSPORT.exec(text)?.[1];
      if (transport !== undefined) return this.#onRefused(transport);
      if (!text.includes(REFUSED)) return;
      const refused = NO_WEBSOCKET.exec(text)?.[1] ?? (this.#isWorker(session) ? undefined : url);
      if (refused !== undefined) this.#onRefused(refused);
    },
    // Only of workers, where not all requests are logged.
    'Network.requestWillBeSent': ({ requestId, request: { url } }, session) => {
      this.#requests.set(keyOf(requestId, session), url);
      const [oldest] = this.#requests.keys();
      if (this.#requests.size > MOST_REQUESTS) this.#requests.delete(oldest!);
    },
    'Network.loadingFinished': ({ requestId }, session) =>
      void this.#requests.delete(keyOf(requestId, session)),
    'Network.loadingFailed': ({ requestId, errorText }, session) => {
      const key = keyOf(requestId, session);
      const url = this.#requests.get(key);
      this.#requests.delete(key);
      if (url !== undefined && errorText === REFUSED) this.#onRefused(url);
    },
    'Page.frameNavigated': ({ frame: { unreachableUrl, loaderId } }) => {
      if (unreachableUrl !== undefined) this.reportNavigation(unreachableUrl, loaderId);
    },
  };

  /** Reports a navigation once, though its event and the answer to a client come in any order, and the event can be too late. */
  reportNavigation(url: string, loaderId: string | undefined): void {
    if (loaderId !== undefined) {
      if (this.#navigations.delete(loaderId)) return;
      this.#navigations.add(loaderId);
      const [oldest] = this.#navigations;
      if (this.#navigations.size > MOST_NAVIGATIONS) this.#navigations.delete(oldest!);
    }
    this.#onRefused(url);
  }

  /** Ends the processes of all pages, without an answer. @param sessions Of all targets. */
  crash(sessions: readonly string[]): void {
    for (const session of sessions)
      if (!this.#isWorker(session))
        this.#cdp()
          .send('Page.crash', {}, session)
          .catch(() => {});
  }

  #isWorker(session: string): boolean {
    return this.#sessions.get(session)?.target.type.endsWith('worker') === true;
  }

  prepare(sessionId: string, { type }: Target): Promise<unknown> {
    const send = (method: string, params?: object) => this.#cdp().send(method, params, sessionId);
    const sendOnly = (method: string, params?: object) => void send(method, params).catch(() => {});
    let answered: Promise<unknown> = Promise.resolve();
    if (/^(page|iframe)$/.test(type)) {
      // A page can fill its stack before it adds a frame, or opens a pop-up: then no script fits there. The browser itself puts
      // these functions, which do nothing, in place of the constructors.
      sendOnly('Runtime.enable');
      for (const name of WEBRTC) sendOnly('Runtime.addBinding', { name });
      // Without this command, the script would run only now.
      sendOnly('Page.enable');
      const script = { source: NO_WEBRTC, runImmediately: true };
      answered = send('Page.addScriptToEvaluateOnNewDocument', script);
      answered.catch(() => {});
    }
    // The page logs what its workers do.
    if (type !== 'worker') sendOnly('Log.enable');
    if (type.endsWith('worker'))
      sendOnly('Network.enable', { maxTotalBufferSize: 0, maxResourceBufferSize: 0 });
    return answered;
  }

  /** Waits until the pages have reported what was refused until now. Never rejects. */
  async flush(sessions: readonly string[]): Promise<void> {
    const reports = sessions.map((session) => this.#cdp().send('Page.getFrameTree', {}, session));
    const late = () => new Error('A page does not respond.');
    await raceTimeout(FLUSH_TIMEOUT, () => Promise.allSettled(reports), late).catch(() => {});
  }
}

function keyOf(request: string, session = ''): string {
  return `${session} ${request}`;
}
