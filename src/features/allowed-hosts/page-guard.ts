import type { CdpClient, EventListeners } from '../../connect/cdp-client.js';
import { freeLoggedObjects } from '../../connect/logged-objects.js';
import type { EventParams } from '../../connect/message.js';
import type { PageStarts } from '../../connect/page-starts.js';
import { raceTimeout } from '../../shared/abort.js';

/** Time in ms for a page to be prepared. */
const PREPARATION_TIMEOUT = 10_000;
/** Time in ms for the last reports of pages. */
const FLUSH_TIMEOUT = 500;
/** Most refused navigations whose second report can follow. */
const MOST_NAVIGATIONS = 100;
/** The constructors of WebRTC, which sends UDP packets past every proxy. */
const WEBRTC = ['RTCPeerConnection', 'webkitRTCPeerConnection'];
/** Takes them from a page. */
const NO_WEBRTC = WEBRTC.map((name) => `delete globalThis.${name};`).join(' ');
/** How Chromium reports a request to a host that is not allowed. */
export const REFUSED = 'net::ERR_PROXY_CONNECTION_FAILED';

/** How Chromium logs that WebTransport and a WebSocket failed: their URL is only in the text. */
const NO_TRANSPORT = /^Failed to establish a connection to (https:\S+): net::/;
const NO_WEBSOCKET = /'(wss?:[^']*)'/;

/** What the guard attaches to. Frames of other sites and workers are below a target, and wait in a way of their own. */
const OF_BROWSER = {
  flatten: true,
  filter: ['page', 'shared_worker', 'service_worker'].map((type) => ({ type })),
};
const BELOW = { flatten: false, filter: ['iframe', 'worker'].map((type) => ({ type })) };

type Attached = EventParams<'Target.attachedToTarget'>;
type Target = Attached['targetInfo'];

interface Prepared {
  readonly session: Promise<string>;
  readonly done: (session: string) => void;
  readonly fail: (error: unknown) => void;
  /** Of a page that has gone on. */
  readonly started: Promise<string>;
  readonly start: (session: string) => void;
}

/** Takes WebRTC from all pages before their first script, and reports the requests that failed because of the limit. */
export class PageGuard {
  readonly #cdp: () => CdpClient;
  readonly #isGuarded: (target: Target) => boolean;
  readonly #onRefused: (url: string) => void;
  readonly #starts: PageStarts;
  /** By the id of the target. */
  readonly #prepared = new Map<string, Prepared>();
  /** The targets of sessions: those that guard, and those in which frames and workers wait. */
  readonly #targets = new Map<string, string>();
  readonly #held = new Map<string, string>();
  /** The open requests of workers, by their session. */
  readonly #workers = new Map<string, Map<string, string>>();
  readonly #guarded = new Set<string>();
  /** The ids of refused navigations that were reported. */
  readonly #navigations = new Set<string>();
  /** A frame began before its guard. */
  hasLateFrame = false;

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
    // Chromium asks the clients in the order in which they attached, and those after one that waits only when the frame goes on.
    starts.onAttached = async (targetId) => this.#attach(await this.ready(targetId), BELOW);
  }

  readonly listeners: EventListeners = {
    ...freeLoggedObjects(() => this.#cdp()),
    'Target.attachedToTarget': (params, parent) => {
      const { sessionId, targetInfo } = params;
      if (parent === undefined) return void this.#begin(params).catch(() => {});
      this.#held.set(sessionId, targetInfo.targetId);
      void this.#beginBelow(params, parent).catch((error: unknown) => this.#end(targetInfo.targetId, error));
    },
    'Target.detachedFromTarget': ({ sessionId = '' }) => {
      const targetId = this.#targets.get(sessionId) ?? this.#held.get(sessionId);
      this.#targets.delete(sessionId);
      this.#held.delete(sessionId);
      this.#workers.delete(sessionId);
      if (targetId !== undefined) this.#end(targetId, new Error('The page is closed.'));
    },
    'Inspector.targetReloadedAfterCrash': (_params, session = '') => {
      if (this.#workers.has(session)) void this.#beginAgain(session).catch(() => {});
    },
    'Log.entryAdded': ({ entry: { text, url } }, session = '') => {
      const transport = NO_TRANSPORT.exec(text)?.[1];
      if (transport !== undefined) return this.#onRefused(transport);
      if (!text.includes(REFUSED)) return;
      const refused = NO_WEBSOCKET.exec(text)?.[1] ?? (this.#workers.has(session) ? undefined : url);
      if (refused !== undefined) this.#onRefused(refused);
    },
    // Only of workers, where not all requests are logged.
    'Network.requestWillBeSent': ({ requestId, request: { url } }, session = '') =>
      void this.#workers.get(session)?.set(requestId, url),
    'Network.loadingFinished': ({ requestId }, session = '') =>
      void this.#workers.get(session)?.delete(requestId),
    'Network.loadingFailed': ({ requestId, errorText }, session = '') => {
      const requests = this.#workers.get(session);
      const url = requests?.get(requestId);
      requests?.delete(requestId);
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

  /** Begins with all pages that are open, and those to come. */
  async begin(): Promise<void> {
    await this.#attach(undefined, OF_BROWSER);
  }

  /** Whether a page of the lease is prepared, or is being prepared. */
  isGuarding(targetId: string): boolean {
    return this.#guarded.has(targetId);
  }

  /** Waits until a target is prepared. Resolves to the session of the guard. @throws If the target is closed. */
  async ready(targetId: string): Promise<string> {
    if (!this.#guarded.has(targetId)) await this.#cdp().send('Target.getTargetInfo', { targetId });
    const late = () => new Error('The page could not be prepared in time.');
    return raceTimeout(PREPARATION_TIMEOUT, () => this.#preparedOf(targetId).session, late);
  }

  /** Waits until a page has gone on. Resolves to the session of the guard. */
  async started(targetId: string): Promise<string> {
    return this.#preparedOf(targetId).started;
  }

  /** Waits until the pages have reported what was refused until now. Never rejects. */
  async flush(): Promise<void> {
    const reports = [...this.#targets.keys()].map((session) =>
      this.#cdp().send('Page.getFrameTree', {}, session),
    );
    const late = () => new Error('A page does not respond.');
    await raceTimeout(FLUSH_TIMEOUT, () => Promise.allSettled(reports), late).catch(() => {});
  }

  /** Ends the processes of all pages, without an answer. */
  crash(): void {
    for (const session of this.#targets.keys())
      if (!this.#workers.has(session))
        this.#cdp()
          .send('Page.crash', {}, session)
          .catch(() => {});
  }

  async #attach(sessionId: string | undefined, how: object): Promise<void> {
    const waiting = { autoAttach: true, waitForDebuggerOnStart: true, ...how };
    await this.#cdp().send('Target.setAutoAttach', waiting, sessionId);
  }

  async #begin({ sessionId, targetInfo, waitingForDebugger = false }: Attached): Promise<void> {
    const { targetId, type } = targetInfo;
    const goOn = () => this.#cdp().send('Runtime.runIfWaitingForDebugger', {}, sessionId);
    // The session of a frame or worker that this object has opened.
    if (/^(iframe|worker)$/.test(type)) return;
    if (!this.#isGuarded(targetInfo)) return void (await goOn());
    if (waitingForDebugger) this.#starts.begin(targetId);
    const { removed } = await this.#prepare(sessionId, targetInfo);
    if (waitingForDebugger) await this.#starts.settled(targetInfo);
    await goOn();
    await removed;
    this.#preparedOf(targetId).start(sessionId);
  }

  /** Chromium lets a service worker that was stopped wait again. It has the commands of its sessions, and attaches to nothing new. */
  async #beginAgain(sessionId: string): Promise<void> {
    const targetId = this.#targets.get(sessionId)!;
    this.#starts.begin(targetId);
    await this.#starts.settled({ targetId, type: 'service_worker', isAgain: true });
    await this.#cdp().send('Runtime.runIfWaitingForDebugger', {}, sessionId);
  }

  /**
   * Begins with a frame of another site, or a worker. The command that lets a frame go on would reach its process, and let a new page of
   * this process go on that is not prepared. So the frame waits in a session that can be ended in the browser itself: a message without
   * an id is not passed on.
   */
  async #beginBelow(
    { sessionId, targetInfo, waitingForDebugger = false }: Attached,
    parent: string,
  ): Promise<void> {
    const { targetId, type } = targetInfo;
    if (type === 'iframe' && !waitingForDebugger) this.hasLateFrame = true;
    if (waitingForDebugger) this.#starts.begin(targetId);
    await this.#prepare(await this.#cdp().attach(targetId), targetInfo);
    if (!waitingForDebugger) return;
    await this.#starts.settled(targetInfo, this.#targets.get(parent));
    const method = 'Runtime.runIfWaitingForDebugger';
    const message = JSON.stringify(type === 'iframe' ? { method } : { id: 1, method });
    await this.#cdp().send('Target.sendMessageToTarget', { sessionId, message }, parent);
  }

  /**
   * Resolves when no script of a target can run without the guard. A page that waits may not have responded then, that WebRTC is
   * removed.
   */
  async #prepare(sessionId: string, { targetId, type }: Target): Promise<{ removed: Promise<unknown> }> {
    this.#targets.set(sessionId, targetId);
    this.#guarded.add(targetId);
    const send = (method: string, params?: object) => this.#cdp().send(method, params, sessionId);
    const sendOnly = (method: string, params?: object) => void send(method, params).catch(() => {});
    let removed: Promise<unknown> = Promise.resolve();
    if (/^(page|iframe)$/.test(type)) {
      // A page can fill its stack before it adds a frame, or opens a pop-up: then no script has room there. The browser itself puts
      // these functions, which do nothing, in place of the constructors.
      sendOnly('Runtime.enable');
      for (const name of WEBRTC) sendOnly('Runtime.addBinding', { name });
      // Without it, the script would run only now.
      sendOnly('Page.enable');
      const script = { source: NO_WEBRTC, runImmediately: true };
      removed = send('Page.addScriptToEvaluateOnNewDocument', script);
      removed.catch(() => {});
    }
    // The page logs what its workers do.
    if (type !== 'worker') sendOnly('Log.enable');
    if (type.endsWith('worker')) {
      this.#workers.set(sessionId, new Map());
      sendOnly('Network.enable', { maxTotalBufferSize: 0, maxResourceBufferSize: 0 });
    }
    // The browser itself handles this command, after it has passed the others on: later ones of other clients come after them.
    await this.#attach(sessionId, BELOW);
    this.#preparedOf(targetId).done(sessionId);
    return { removed };
  }

  #end(targetId: string, error: unknown): void {
    this.#starts.end(targetId);
    this.#prepared.get(targetId)?.fail(error);
    this.#prepared.delete(targetId);
    this.#guarded.delete(targetId);
  }

  #preparedOf(targetId: string): Prepared {
    const known = this.#prepared.get(targetId);
    if (known) return known;
    let done = (_session: string) => {};
    let fail = (_error: unknown) => {};
    const session = new Promise<string>((resolve, reject) => ([done, fail] = [resolve, reject]));
    // Nobody may wait for it.
    session.catch(() => {});
    let start = (_session: string) => {};
    const started = new Promise<string>((resolve) => (start = resolve));
    const prepared = { session, done, fail, started, start };
    this.#prepared.set(targetId, prepared);
    return prepared;
  }
}
