import { isBlank } from '../../shared/urls.js';
import { endContexts } from '../../clean/end-contexts.js';
import type { Opening } from '../../drivers/extension.js';
import { onAbort, raceAbort, raceTimeout } from '../../shared/abort.js';
import { clock, startTimer } from '../../shared/clock.js';
import { InvalidOptionError } from '../../shared/errors.js';
import { patternOf, readHosts } from '../../shared/hosts.js';
import { beforeProcessEnds } from '../../shared/process-end.js';
import { excerpt } from '../../shared/redact.js';
import { CdpClient, type OwnClient, type Target } from '../../wire/cdp-client.js';
import type { Layer, Session, Sessions } from '../../wire/layer.js';
import type { WaitingTargets } from '../../wire/waiting-targets.js';
import { bypassListOf } from './bypass-list.js';
import { PageGuard, REFUSED } from './page-guard.js';
import { canSendUdp, inSandbox } from './udp-check.js';

/** Resolves to the type of WebRTC's constructor in a sandboxed frame. */
const IN_SANDBOX = inSandbox('parent.postMessage(typeof RTCPeerConnection, "*")');
const SANDBOXED =
  'its sandboxed frames begin before WebRTC is removed from them. Start it with --disable-features=IsolateSandboxedIframes, or with ' +
  '--webrtc-ip-handling-policy=disable_non_proxied_udp (headless shell: --force-webrtc-ip-handling-policy=…), which the policy ' +
  'WebRtcIPHandling also sets';

/** A proxy at which no program can listen, also not in a container where every user may open every port: 0 is no port. */
const DEAD_PROXY = 'http://127.0.0.1:0';
/** Time for all pages to end, in ms, also of a browser that does not respond. */
const END_TIMEOUT = 8000;

/** Time in ms in which a browser is destroyed whose pages have not ended. */
const DESTROY_TIMEOUT = 60_000;

/** The commands of the browser and of its targets that can not lead past a context. */
const KNOWN_COMMANDS = [
  /^Browser\.(getVersion|getHistograms?|getBrowserCommandLine|close|addMockCamera|[gs]etGlobalPrivacyControl)$/,
  /^Browser\.([gs]etWindowBounds|getWindowForTarget|setContentsSize|setDockTile|setPermission|grantPermissions)$/,
  /^Browser\.(resetPermissions|setDownloadBehavior|cancelDownload)$/,
  /^Target\.(activateTarget|attachTo(Browser)?Target|closeTarget|createBrowserContext|getBrowserContexts)$/,
  /^Target\.(createTarget|detachFromTarget|disposeBrowserContext|getTargetInfo|getTargets|setAutoAttach)$/,
  /^Target\.(autoAttachRelated|setDiscoverTargets)$/,
];
/** Domains that load, listen or search for devices outside of all contexts. */
const OUTSIDE = /^(Cast|Extensions|PWA|Tethering)\./;

/** Ways to what was removed from a page: they stop its scripts before the removal, or search the memory. */
const INTO_PAGES =
  /^(Debugger\.(?!(enable|disable|getScriptSource|searchInContent|setAsyncCallStackDepth|setBlackboxPatterns|setSkipAllPauses)$)|DOMDebugger\.|EventBreakpoints\.|HeapProfiler\.(addInspectedHeapObject|getObjectByHeapObjectId)$|Runtime\.queryObjects$|Page\.waitForDebugger$)/;

/**
 * What a page of the lease may show. Pages of the browser itself, such as chrome://inspect, connect past the context, and so do files of
 * another host: Windows takes `file:////host/` for one.
 */
const PAGES = /^(https?:|data:|blob:|javascript:|about:(blank|srcdoc)|file:\/\/\/(?!\/))/;

interface InContext {
  readonly browserContextId?: string | undefined;
}

export interface LimitPlan {
  /** The option `allowedHosts`. */
  readonly hosts: string;
  /** Returns why a host is not reached, for its clients. @param url Undefined if it is not known. */
  explain(url?: string): string;
  /** Called with the URL of each request that failed because of the limit. */
  onRefused(url: string): void;
  /** A page of the browser's own context was changed. */
  onOwnContextUsed(): void;
}

/**
 * Limits all clients of a browser to contexts in which only the allowed hosts are reached: such a context has a proxy at which nothing
 * listens, and the allowed hosts need none. One of the contexts stands for the browser's own one, which no client sees.
 */
export class HostLimit {
  readonly #plan: LimitPlan;
  readonly #allowed: RegExp;
  readonly #proxy: { readonly proxyServer: string; readonly proxyBypassList: string };
  /** The contexts that clients may use. */
  readonly #contexts = new Set<string>();
  readonly #sessions: Sessions;
  readonly #guard: PageGuard;
  readonly #waiting: WaitingTargets;
  readonly #cdp: CdpClient;
  #isOver = false;
  /** Not all pages have ended in time. */
  #mayRun = false;
  /** Resolves when no page of the lease runs any longer. */
  #ending: Promise<void> | undefined;
  readonly #stopWatchingProcess: () => void;

  private constructor(client: OwnClient, { shared, onLost, signal }: Opening, plan: LimitPlan) {
    this.#plan = plan;
    this.#allowed = patternOf(readHosts(plan.hosts));
    this.#proxy = { proxyServer: DEAD_PROXY, proxyBypassList: bypassListOf(plan.hosts) };
    this.#sessions = shared.sessions;
    const isMeant = ({ browserContextId = '' }: Target) => this.#contexts.has(browserContextId);
    const cdp = () => this.#cdp;
    this.#guard = new PageGuard(cdp, shared.sessions, isMeant, this.#onRefused);
    this.#waiting = shared.waiting;
    this.#waiting.waitFor(this.#guard, cdp);
    shared.stack.addLimits(this.#layer, this.#waiting.layer);
    this.#cdp = new CdpClient(client, { ...this.#guard.listeners, ...this.#waiting.listeners });
    // The browser can be destroyed after this process has ended, and nothing is received meanwhile.
    this.#stopWatchingProcess = beforeProcessEnds({
      atExit: this.#crash,
      beforeEnd: async () => this.#crash(),
    });
    void client.detached.then(() => {
      this.#stopWatchingProcess();
      if (!this.#isOver) onLost();
    });
    onAbort(signal, () => this.#cut());
  }

  /** Sets the limit. @throws InvalidOptionError if the browser can't have it. */
  static async begin(opening: Opening, plan: LimitPlan): Promise<HostLimit> {
    const { openCdp, signal } = opening;
    const client = await openCdp(signal);
    const limit = new HostLimit(client, opening, plan);
    let hasEnded = false;
    void client.detached.then(() => (hasEnded = true));
    try {
      await raceAbort(limit.#limit(), signal);
      return limit;
    } catch (error) {
      limit.#cut();
      if (hasEnded || signal.aborted || error instanceof InvalidOptionError) throw error;
      throw impossible((error as Error).message);
    }
  }

  async stop(): Promise<void> {
    // The pages are guarded until they have ended.
    this.#isOver = true;
    await this.#guard.flush(this.#waiting.sessions);
  }

  /** Closes all contexts of the lease. No client can open another one meanwhile. @throws If a page may still run. */
  end(): Promise<void> {
    this.#isOver = true;
    return (this.#ending ??= this.#endPages());
  }

  async #endPages(): Promise<void> {
    const late = () => new Error('The pages did not end in time.');
    try {
      await raceTimeout(END_TIMEOUT, () => this.#endContexts(), late);
    } catch (error) {
      this.#mayRun = true;
      this.#crash();
      throw error;
    }
  }

  readonly #crash = (): void => this.#guard.crash(this.#waiting.sessions);

  async #endContexts(): Promise<void> {
    const [cdp, contexts] = [this.#cdp, this.#contexts];
    const { browserContextIds } = await cdp.send('Target.getBrowserContexts');
    const open = browserContextIds.filter((id) => contexts.has(id));
    await endContexts(cdp, open, contexts);
  }

  #cut(): void {
    this.#isOver = true;
    const close = () => this.#cdp.close();
    // The browser is destroyed, and its pages keep their guard until then.
    if (this.#mayRun) startTimer(DESTROY_TIMEOUT, close)?.unref();
    else close();
  }

  async #limit(): Promise<void> {
    const cdp = this.#cdp;
    // If this connection is lost, the pages end with it.
    const context = { ...this.#proxy, disposeOnDetach: true };
    const { browserContextId } = await cdp.send('Target.createBrowserContext', context);
    this.#sessions.ownContext = browserContextId;
    this.#contexts.add(browserContextId);
    await Promise.all([this.#waiting.open(), this.#blankOthers()]);
    const targetId = await cdp.openPage({ browserContextId });
    await this.#prove(targetId, await this.#waiting.ready(targetId));
  }

  /** The service may have opened a page before the lease. */
  async #blankOthers(): Promise<void> {
    const isOther = ({ type, url, browserContextId }: Target) =>
      type === 'page' && !isBlank(url) && browserContextId !== this.#sessions.ownContext;
    const others = (await this.#cdp.targets()).filter(isOther);
    if (others.length > 0) this.#plan.onOwnContextUsed();
    await Promise.all(
      others.map(async ({ targetId }) =>
        this.#cdp.send('Page.navigate', { url: 'about:blank' }, await this.#cdp.attach(targetId)),
      ),
    );
  }

  /** A service can ignore a field that it does not support: the browser must show that it has the limit. */
  async #prove(frameId: string, session: string): Promise<void> {
    const url = `http://${globalThis.crypto.randomUUID()}.invalid/`;
    const options = { disableCache: true, includeCredentials: false };
    const [{ resource }, { result }, { result: sandboxed }] = await Promise.all([
      this.#cdp.send('Network.loadNetworkResource', { frameId, url, options }, session),
      this.#cdp.send('Runtime.evaluate', { expression: 'typeof RTCPeerConnection' }, session),
      this.#cdp.send('Runtime.evaluate', { expression: IN_SANDBOX, awaitPromise: true }, session),
    ]);
    if (!this.#allowed.test(url) && resource.netErrorName !== REFUSED)
      throw impossible(`a request to an unknown host ended with ${resource.netErrorName ?? 'a response'}`);
    if (result.value !== 'undefined') throw impossible('its pages have WebRTC');
    // The guard can be in time by chance.
    const isLate = sandboxed.value !== 'undefined' || this.#waiting.hasLateFrame;
    if (isLate && (await canSendUdp(this.#cdp, this.#proxy))) throw impossible(SANDBOXED);
  }

  readonly #onRefused = (url: string): void => {
    if (/^(https?|wss?):/.test(url) && URL.canParse(url) && !this.#allowed.test(new URL(url).href))
      this.#plan.onRefused(url);
  };

  /** Between all clients and the browser. */
  readonly #layer: Layer = {
    name: 'allowed-hosts',
    commands: {
      '*': ({ method }, next) => {
        if (this.#ending) throw new Error('The lease has ended.');
        const isRefused =
          OUTSIDE.test(method) ||
          INTO_PAGES.test(method) ||
          (/^(Browser|Target)\./.test(method) && !KNOWN_COMMANDS.some((known) => known.test(method)));
        if (isRefused) throw new Error(`${excerpt(method, 100)} is not available with allowedHosts.`);
        return next();
      },
      'Target.createBrowserContext': async (_command, next) => {
        // Pages must not outlast the connection that guards them.
        const answer = await next({ ...this.#proxy, disposeOnDetach: true });
        this.#contexts.add(answer.result.browserContextId);
        return answer;
      },
      'Target.createTarget': async ({ params }, next) => {
        expectPage(params.url);
        // No client sees the events of a hidden page.
        const shown = params['hidden'] === true && { hidden: false };
        const blank = blankFor(params);
        const answer = await next({ ...this.#inContext(params), ...(blank && { url: blank }), ...shown });
        const { targetId } = answer.result;
        await this.#whenReady(targetId);
        if (blank !== undefined) void this.#open(targetId, { blank, url: params.url }).catch(() => {});
        // Playwright expects this result after the event of the page, which waits, too.
        await new Promise((resolve) => clock.setImmediate(resolve));
        return answer;
      },
      'Target.disposeBrowserContext': ({ params }, next) => {
        if (params.browserContextId === this.#sessions.ownContext) throw new Error(NO_CONTEXT);
        return next(this.#inContext(params));
      },
      'Target.attachToTarget': async ({ params }, next) => {
        await this.#whenReady(params.targetId);
        return next();
      },
      'Target.autoAttachRelated': async ({ params }, next) => {
        await this.#whenReady(params.targetId);
        return next();
      },
      'Browser.setPermission': ({ params }, next) => next(this.#inContext(params)),
      'Browser.grantPermissions': ({ params }, next) => next(this.#inContext(params)),
      'Browser.resetPermissions': ({ params }, next) => next(this.#inContext(params)),
      'Browser.setDownloadBehavior': ({ params }, next) => next(this.#inContext(params)),
      'Browser.cancelDownload': ({ params }, next) => next(this.#inContext(params)),
      'Storage.getCookies': ({ params, session }, next) => next(this.#inStorage(params, session)),
      'Storage.setCookies': ({ params, session }, next) => next(this.#inStorage(params, session)),
      'Storage.clearCookies': ({ params, session }, next) => next(this.#inStorage(params, session)),
      'Page.navigate': async ({ params: { url = '' } }, next) => {
        const answer = await next(expectPage(url));
        const { errorText, loaderId } = answer.result;
        if (errorText !== REFUSED) return answer;
        const isRedirect = URL.canParse(url) && this.#allowed.test(new URL(url).href);
        if (!isRedirect && loaderId !== undefined) this.#guard.reportNavigation(url, loaderId);
        return answer.with({ errorText: this.#explained(url) });
      },
      'Target.getBrowserContexts': async (_command, next) => {
        const answer = await next();
        const { browserContextIds: all } = answer.result;
        const browserContextIds = all.filter(
          (id) => this.#contexts.has(id) && id !== this.#sessions.ownContext,
        );
        return answer.with({ browserContextIds, defaultBrowserContextId: this.#sessions.ownContext });
      },
      'Target.getTargets': async (_command, next) => {
        const answer = await next();
        return answer.with({ targetInfos: answer.result.targetInfos.filter((one) => this.#isSeen(one)) });
      },
    },
    events: {
      'Target.attachedToTarget': ({ params }, next) => (this.#isSeen(params.targetInfo) ? next() : undefined),
      // The address is in another event, of which there are too many.
      'Network.loadingFailed': ({ params }, next) =>
        next(params.errorText === REFUSED ? { errorText: this.#explained() } : undefined),
      'Target.targetCreated': ({ params }, next) => (this.#isSeen(params.targetInfo) ? next() : undefined),
      'Target.targetInfoChanged': ({ params }, next) =>
        this.#isSeen(params.targetInfo) ? next() : undefined,
    },
  };

  /** A client that read only of a proxy would try again. */
  #explained(url?: string): string {
    return `${REFUSED} (${this.#plan.explain(url)})`;
  }

  #isSeen({ type, browserContextId = '' }: Target): boolean {
    return type === 'browser' || this.#contexts.has(browserContextId);
  }

  /** Returns the context of a command that means the browser's own one, also in the session of a page of another context. */
  #inContext({ browserContextId: id }: InContext): { browserContextId: string } | undefined {
    if (id !== undefined && !this.#contexts.has(id)) throw new Error(NO_CONTEXT);
    return id === undefined ? { browserContextId: this.#sessions.ownContext! } : undefined;
  }

  /** Returns the context of a command for which a page means its own context. */
  #inStorage(params: InContext, session: Session | undefined): { browserContextId: string } | undefined {
    const isOfBrowser = session === undefined || session.target.type === 'browser';
    return isOfBrowser || params.browserContextId !== undefined ? this.#inContext(params) : undefined;
  }

  /** Opens the URL of a new page, unless it shows something else by now. */
  async #open(targetId: string, { blank, url }: { blank: string; url: string }): Promise<void> {
    const { targetInfo } = await this.#cdp.send('Target.getTargetInfo', { targetId });
    if (targetInfo.url === blank)
      await this.#cdp.send('Page.navigate', { url }, await this.#waiting.started(targetId));
  }

  /** Waits until no script of a page can run without the guard. */
  async #whenReady(targetId: string): Promise<void> {
    // Saves a round trip for a page that was just opened.
    if (this.#waiting.has(targetId)) return void (await this.#waiting.ready(targetId));
    const { targetInfo } = await this.#cdp.send('Target.getTargetInfo', { targetId });
    if (!this.#isSeen(targetInfo)) throw new Error('No target with given id found');
    if (/^(page|iframe)$/.test(targetInfo.type)) await this.#waiting.ready(targetId);
  }
}

const NO_CONTEXT = 'Failed to find browser context with this id';

/**
 * Returns the URL with which a page begins that shall show another one: Chromium can load the first document of a page before the scripts
 * of its sessions, so a new page is blank, and is navigated later. Undefined for a page that stays blank.
 */
function blankFor({ url, forTab }: { url: string; forTab?: unknown }): string | undefined {
  if (isBlank(url)) return undefined;
  if (forTab === true) throw new Error('With allowedHosts, a new tab must be blank.');
  return `about:blank#${globalThis.crypto.randomUUID()}`;
}

/** @throws If a page of the browser, or of another program, would be opened. */
function expectPage(url: string): undefined {
  const parsed = URL.canParse(url) ? new URL(url).href : url.trim();
  if (parsed === '' || PAGES.test(parsed.replace(/^view-source:/, ''))) return undefined;
  throw new Error(`${excerpt(url, 200)} can not be opened with allowedHosts.`);
}

function impossible(why: string): InvalidOptionError {
  const message = `allowedHosts can not be set on this browser: ${excerpt(why, 500)}. Remove the option, or use a browser that has contexts with proxies of their own.`;
  return new InvalidOptionError('allowedHosts', message);
}
