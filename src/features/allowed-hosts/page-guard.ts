import type { CdpClient, EventListeners } from '../../connect/cdp-client.js';
import type { EventParams } from '../../connect/message.js';
import { raceTimeout } from '../../shared/abort.js';

/** Time in ms for a page to be prepared. */
const PREPARATION_TIMEOUT = 10_000;
/** Takes WebRTC, which sends UDP packets past every proxy, from a JavaScript world. */
export const NO_WEBRTC = 'delete globalThis.RTCPeerConnection; delete globalThis.webkitRTCPeerConnection;';
/**
 * The same for a page and its pop-ups. While a pop-up waits for the guard, the resumption of another page of its process can let the
 * opener go on before.
 */
const NO_WEBRTC_IN_PAGES = `(() => {
  const strip = (world) => {
    try {
      delete world.RTCPeerConnection;
      delete world.webkitRTCPeerConnection;
    } catch {}
  };
  // A page can replace all of these later.
  const { apply } = Reflect;
  const { URL, document } = window;
  const { open: original } = window;
  const { getAttribute } = Element.prototype;
  const { composedPath, preventDefault } = Event.prototype;
  const { querySelector } = Document.prototype;
  const { toLowerCase } = String.prototype;
  const { get: protocolOf } = Object.getOwnPropertyDescriptor(URL.prototype, 'protocol');
  const isScript = (url) => {
    try {
      return apply(protocolOf, new URL(url, 'http://x'), []) === 'javascript:';
    } catch {
      return false;
    }
  };
  strip(window);
  window.open = {
    open(url = '', target = '', features = '') {
      // Its script would run before this function returns.
      const opened = apply(original, this ?? window, isScript(url) ? ['', target, features] : arguments);
      strip(opened);
      return opened;
    },
  }.open;
  // A script as the URL of a link or a form runs in a new window before anything else.
  const attribute = (node, name) => {
    try {
      return apply(getAttribute, node, [name]) ?? '';
    } catch {
      return '';
    }
  };
  const runsElsewhere = (node) => {
    const hasScript =
      isScript(attribute(node, 'href')) ||
      isScript(attribute(node, 'xlink:href')) ||
      isScript(attribute(node, 'action')) ||
      isScript(attribute(node, 'formaction'));
    if (!hasScript) return false;
    const base = apply(querySelector, document, ['base[target]']);
    const given = attribute(node, 'formtarget') || attribute(node, 'target') || attribute(base, 'target');
    const target = apply(toLowerCase, given, []);
    return target !== '' && target !== '_self' && target !== '_parent' && target !== '_top';
  };
  const stop = (event) => {
    const path = apply(composedPath, event, []);
    for (let index = 0; index < path.length; index++)
      if (runsElsewhere(path[index])) apply(preventDefault, event, []);
    if (runsElsewhere(event.submitter)) apply(preventDefault, event, []);
  };
  addEventListener('click', stop, true);
  addEventListener('auxclick', stop, true);
  addEventListener('submit', stop, true);
  const limit = (prototype, name) => {
    const method = prototype[name];
    prototype[name] = {
      [name](...args) {
        return runsElsewhere(this) || runsElsewhere(args[0]) ? undefined : apply(method, this, args);
      },
    }[name];
  };
  limit(HTMLElement.prototype, 'click');
  limit(EventTarget.prototype, 'dispatchEvent');
  limit(HTMLFormElement.prototype, 'submit');
  limit(HTMLFormElement.prototype, 'requestSubmit');
})();`;
/** How Chromium reports a request to a host that is not allowed. */
export const REFUSED = 'net::ERR_PROXY_CONNECTION_FAILED';

/** Pages and frames of other sites, but not workers, which have no WebRTC. */
const WITH_WEBRTC = [{ type: 'page' }, { type: 'iframe' }];

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
  /** By the id of the target. */
  readonly #prepared = new Map<string, Prepared>();
  readonly #targets = new Map<string, string>();
  readonly #guarded = new Set<string>();

  /** @param isGuarded False for pages that are not of the lease. */
  constructor(
    cdp: () => CdpClient,
    isGuarded: (target: Target) => boolean,
    onRefused: (url: string) => void,
  ) {
    this.#cdp = cdp;
    this.#isGuarded = isGuarded;
    this.#onRefused = onRefused;
  }

  readonly listeners: EventListeners = {
    'Target.attachedToTarget': (params) => void this.#prepare(params).catch(() => {}),
    'Target.detachedFromTarget': ({ sessionId = '' }) => {
      const targetId = this.#targets.get(sessionId) ?? '';
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

  async #attach(sessionId: string | undefined): Promise<void> {
    const how = { autoAttach: true, waitForDebuggerOnStart: true, flatten: true, filter: WITH_WEBRTC };
    await this.#cdp().send('Target.setAutoAttach', how, sessionId);
  }

  async #prepare({ sessionId, targetInfo }: EventParams<'Target.attachedToTarget'>): Promise<void> {
    const { targetId } = targetInfo;
    const send = (method: string, params?: object) => this.#cdp().send(method, params, sessionId);
    this.#targets.set(sessionId, targetId);
    // The commands of a page that waits for its clients may have no response before all clients let it go on.
    const sendOnly = (method: string, params?: object) => void send(method, params).catch(() => {});
    let isReached: Promise<unknown> | undefined;
    if (this.#isGuarded(targetInfo)) {
      this.#guarded.add(targetId);
      // Without it, the script would run only now.
      sendOnly('Page.enable');
      sendOnly('Page.addScriptToEvaluateOnNewDocument', { source: NO_WEBRTC_IN_PAGES, runImmediately: true });
      sendOnly('Log.enable');
      // The browser itself handles this command, after it has passed the others on: later ones of other clients come after them.
      isReached = this.#attach(sessionId);
    }
    sendOnly('Runtime.runIfWaitingForDebugger');
    await isReached;
    this.#preparedOf(targetId).done(sessionId);
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
