import type { CdpClient, EventListeners } from '../../connect/cdp-client.js';
import type { EventParams } from '../../connect/message.js';
import type { PageStarts } from '../../connect/page-starts.js';
import { raceTimeout } from '../../shared/abort.js';

/** Time in ms for a page to be prepared. */
const PREPARATION_TIMEOUT = 10_000;
/** Time in ms for the last reports of pages. */
const FLUSH_TIMEOUT = 500;
/** Takes WebRTC, which sends UDP packets past every proxy, from a JavaScript world. */
export const NO_WEBRTC = 'delete globalThis.RTCPeerConnection; delete globalThis.webkitRTCPeerConnection;';
/** How Chromium reports a request to a host that is not allowed. */
export const REFUSED = 'net::ERR_PROXY_CONNECTION_FAILED';

/** Pages, frames of other sites, and workers, which have no WebRTC, but whose requests are refused, too. */
const GUARDED = ['page', 'iframe', 'worker', 'shared_worker', 'service_worker'].map((type) => ({ type }));

type Target = EventParams<'Target.attachedToTarget'>['targetInfo'];

interface Prepared {
  readonly session: Promise<string>;
  readonly done: (session: string) => void;
}

/** Takes WebRTC from all pages before their first script, and reports the requests that failed because of the limit. */
export class PageGuard {
  readonly #cdp: () => CdpClient;
  readonly #isGuarded: (target: Target) => boolean;
  readonly #onRefused: (url: string) => void;
  readonly #starts: PageStarts;
  /** By the id of the target. */
  readonly #prepared = new Map<string, Prepared>();
  readonly #targets = new Map<string, string>();
  readonly #guarded = new Set<string>();

  /** @param isGuarded False for pages that are not of the lease. */
  constructor(
    cdp: () => CdpClient,
    isGuarded: (target: Target) => boolean,
    onRefused: (url: string) => void,
    starts: PageStarts,
  ) {
    this.#cdp = cdp;
    this.#isGuarded = isGuarded;
    this.#onRefused = onRefused;
    this.#starts = starts;
    starts.isHeld = true;
  }

  readonly listeners: EventListeners = {
    'Target.attachedToTarget': (params, _data, parent) => void this.#prepare(params, parent).catch(() => {}),
    'Target.detachedFromTarget': ({ sessionId = '' }) => {
      const targetId = this.#targets.get(sessionId) ?? '';
      this.#starts.end(targetId);
      this.#prepared.delete(targetId);
      this.#guarded.delete(targetId);
      this.#targets.delete(sessionId);
    },
    'Log.entryAdded': ({ entry: { text, url } }) => {
      if (!text.includes(REFUSED)) return;
      // That of a WebSocket is only in the text.
      const refused = /'(wss?:[^']*)'/.exec(text)?.[1] ?? url;
      if (refused !== undefined) this.#onRefused(refused);
    },
    'Page.frameNavigated': ({ frame: { unreachableUrl } }) => {
      if (unreachableUrl !== undefined) this.#onRefused(unreachableUrl);
    },
  };

  /** Begins with all pages that are open, and those to come. */
  async begin(): Promise<void> {
    await this.#attach(undefined);
  }

  /** Whether a page of the lease is prepared, or is being prepared. */
  isGuarding(targetId: string): boolean {
    return this.#guarded.has(targetId);
  }

  /** Waits until a page is prepared. Resolves to the session of the guard. */
  async ready(targetId: string): Promise<string> {
    const late = () => new Error('The page could not be prepared in time.');
    return raceTimeout(PREPARATION_TIMEOUT, () => this.#preparedOf(targetId).session, late);
  }

  /** Waits until the pages have reported what was refused until now. Never rejects. */
  async flush(): Promise<void> {
    const reports = [...this.#targets.keys()].map((session) =>
      this.#cdp().send('Page.getFrameTree', {}, session),
    );
    const late = () => new Error('A page does not respond.');
    await raceTimeout(FLUSH_TIMEOUT, () => Promise.allSettled(reports), late).catch(() => {});
  }

  async #attach(sessionId: string | undefined): Promise<void> {
    const how = { autoAttach: true, waitForDebuggerOnStart: true, flatten: true, filter: GUARDED };
    await this.#cdp().send('Target.setAutoAttach', how, sessionId);
  }

  async #prepare(
    { sessionId, targetInfo, waitingForDebugger = false }: EventParams<'Target.attachedToTarget'>,
    parent: string | undefined,
  ): Promise<void> {
    const { targetId, type } = targetInfo;
    const send = (method: string, params?: object) => this.#cdp().send(method, params, sessionId);
    this.#targets.set(sessionId, targetId);
    // The commands of a page that waits may have no response before it goes on.
    const sendOnly = (method: string, params?: object) => void send(method, params).catch(() => {});
    if (!this.#isGuarded(targetInfo)) return sendOnly('Runtime.runIfWaitingForDebugger');
    this.#guarded.add(targetId);
    // Frames and workers of a page wait for each client: Chromium reports them to no client that does not let them wait.
    const isNewPage = waitingForDebugger && parent === undefined;
    if (isNewPage) this.#starts.begin(targetId);
    if (/^(page|iframe)$/.test(type)) {
      // Without it, the script would run only now.
      sendOnly('Page.enable');
      sendOnly('Page.addScriptToEvaluateOnNewDocument', { source: NO_WEBRTC, runImmediately: true });
    }
    sendOnly('Log.enable');
    // The browser itself handles this command, after it has passed the others on: later ones of other clients come after them.
    await this.#attach(sessionId);
    this.#preparedOf(targetId).done(sessionId);
    if (isNewPage) await this.#starts.settled(targetId, type);
    sendOnly('Runtime.runIfWaitingForDebugger');
  }

  #preparedOf(targetId: string): Prepared {
    const known = this.#prepared.get(targetId);
    if (known) return known;
    let done = (_session: string) => {};
    const session = new Promise<string>((resolve) => (done = resolve));
    const prepared = { session, done };
    this.#prepared.set(targetId, prepared);
    return prepared;
  }
}
