import type { WebSocket } from 'ws';
import { closeWebSocket, GOING_AWAY, SERVER_ERROR } from '../net/accept-websocket.js';
import type { PicturedBrowser, Watch } from '../recorder/pictures.js';
import { raceTimeout } from '../shared/abort.js';
import { CdpSession, type CdpClient, type Target } from '../wire/cdp-client.js';
import { kindOf, performCommand, readLiveCommand, withLimits, type LiveCommand } from './live-commands.js';
import { PageTitles, type LiveTab } from './page-titles.js';

/** A message from the server to the live view page. Binary messages are JPEG pictures. */
export type LiveMessage =
  /** The first message. */
  | ({ readonly type: 'mode' } & LiveMode)
  /** The tabs, the oldest first, and the id of the tab that is shown. */
  | { readonly type: 'tabs'; readonly tabs: readonly LiveTab[]; readonly current: string | undefined }
  /** Size of the page in CSS pixels, for mouse positions. Comes before the first picture. */
  | { readonly type: 'size'; readonly width: number; readonly height: number };

/** The rights of a viewer. */
export interface LiveMode {
  /** Whether commands that change anything in the browser are refused. */
  readonly readOnly: boolean;
  /** Link to the other mode, watching or controlling. Missing for viewers who may never control. */
  readonly otherUrl?: string;
}

/**
 * One viewer's live view of a browser: sends pictures and tabs, performs commands. It has its own CDP connection, which
 * does not disturb the client.
 */
export class LiveView {
  readonly #socket: WebSocket;
  readonly #browser: PicturedBrowser;
  readonly #mode: LiveMode;
  readonly #onInput: (targetId: string) => void;
  readonly #tabs = new Map<string, LiveTab>();
  readonly #titles = new PageTitles(this.#tabs, () => this.#onTabs());
  /** The tabs that were open at the beginning are in their order. */
  #isSorted = false;
  #cdp: CdpClient | undefined;
  #shown: ShownTab | undefined;
  /** Id of the tab that the viewer chose. Without a choice, the newest tab is shown. */
  #chosen: string | undefined;

  /** @param onInput Called with the id of the tab after each command that was performed there. */
  constructor(
    socket: WebSocket,
    browser: PicturedBrowser,
    mode: LiveMode,
    onInput: (targetId: string) => void = () => {},
  ) {
    this.#socket = socket;
    this.#browser = browser;
    this.#mode = mode;
    this.#onInput = onInput;
    send(socket, { type: 'mode', ...mode });
    this.#open().catch(() => this.#close(SERVER_ERROR, 'The browser does not answer.'));
    const perform = withLimits((command) => this.#perform(command));
    socket.on('message', (data: Buffer, isBinary) => {
      const command = isBinary ? undefined : readLiveCommand(data.toString());
      if (command) perform(command);
    });
    socket.once('close', () => this.#end());
  }

  /** Ends the view with its lease: no further picture is sent, and no further command performed. */
  cut(reason = 'The session has ended.'): void {
    this.#close(GOING_AWAY, reason);
  }

  async #open(): Promise<void> {
    const cdp = await this.#browser.source({
      'Target.targetCreated': ({ targetInfo }) => this.#update(targetInfo),
      'Target.targetInfoChanged': ({ targetInfo }) => this.#update(targetInfo, 'navigation'),
      'Target.targetDestroyed': ({ targetId }) => {
        if (this.#tabs.delete(targetId)) this.#onTabs();
      },
    });
    this.#cdp = cdp;
    void cdp.ended.then(() => this.cut());
    // The view may have ended meanwhile.
    if (this.#socket.readyState !== this.#socket.OPEN) return cdp.close();
    const filter = [{ type: 'page' }, { exclude: true }];
    await cdp.send('Target.setDiscoverTargets', { discover: true, filter });
    await this.#sortTabs(cdp);
    this.#onTabs();
  }

  /** Chromium reports the tabs that are open already by their ids, which are random. */
  async #sortTabs(cdp: CdpClient): Promise<void> {
    const ids = this.#tabs.size > 1 ? [...this.#tabs.keys()] : [];
    const starts = new Map(await Promise.all(ids.map(async (id) => [id, await startOf(cdp, id)] as const)));
    const start = ([id]: [string, LiveTab]) => starts.get(id) ?? LAST;
    const sorted = [...this.#tabs].toSorted((one, other) => start(one) - start(other));
    this.#tabs.clear();
    for (const [id, tab] of sorted) this.#tabs.set(id, tab);
    this.#isSorted = true;
  }

  async #perform(command: LiveCommand): Promise<void> {
    const { readOnly } = this.#mode;
    if (command.type === 'watch') this.#choose(command.id, readOnly);
    else if (this.#shown && !readOnly) {
      const shown = this.#shown;
      await shown.perform(command);
      this.#onInput(shown.targetId);
    }
  }

  #choose(targetId: string, readOnly: boolean): void {
    if (!this.#tabs.has(targetId)) return;
    this.#chosen = targetId;
    this.#showTab();
    // Background tabs of a window render nothing, but a read-only viewer may not bring them to the front.
    if (!readOnly) this.#cdp?.send('Target.activateTarget', { targetId }).catch(() => {});
  }

  #update({ targetId, type, title = '', url }: Target, hint?: 'navigation'): void {
    if (type !== 'page') return;
    this.#tabs.set(targetId, { id: targetId, title, url });
    this.#titles.readSoon(this.#cdp!);
    if (hint) this.#shown?.hint(hint);
    this.#onTabs();
  }

  #onTabs(): void {
    if (!this.#isSorted) return;
    if (this.#chosen !== undefined && !this.#tabs.has(this.#chosen)) this.#chosen = undefined;
    this.#showTab();
  }

  #showTab(): void {
    const tabs = [...this.#tabs.values()];
    const current = this.#chosen ?? tabs.at(-1)?.id;
    if (current !== this.#shown?.targetId) {
      this.#shown?.stop();
      this.#shown =
        current === undefined ? undefined : new ShownTab(this.#browser, this.#cdp!, current, this.#socket);
    }
    send(this.#socket, { type: 'tabs', tabs, current });
  }

  #close(code: number, reason: string): void {
    this.#end();
    closeWebSocket(this.#socket, code, reason);
  }

  #end(): void {
    this.#titles.stop();
    this.#shown?.stop();
    this.#cdp?.close();
  }
}

/** Ignores a failure: the viewer has disconnected. */
function send(socket: WebSocket, message: LiveMessage): void {
  socket.send(JSON.stringify(message), () => {});
}

/** Milliseconds for the start of a tab. */
const START_TIMEOUT = 1000;
/** The start of a tab that does not answer, as one with a dialog: the viewer should see it. */
const LAST = Number.MAX_SAFE_INTEGER;
/** A tab behind others counts as older than these: it may have no pictures. */
const START = 'document.hidden ? 0 : performance.timeOrigin';

/** Returns since when a tab has its document. Never rejects. */
function startOf(cdp: CdpClient, targetId: string): Promise<number> {
  const read = async () => {
    const session = new CdpSession(cdp, await cdp.attach(targetId));
    return Number(await valueIn(session, targetId, START).finally(() => session.detach()));
  };
  return raceTimeout(START_TIMEOUT, read).catch(() => LAST);
}

/** Fewest milliseconds between pictures, unless the viewer does something. */
const INTERVAL = 100;

/** Milliseconds for the answer to a mouse button. A page that does not respond, or has an open dialog, gives none. */
const CLICK_TIMEOUT = 1000;

/** A world whose values the page's scripts cannot change. */
const WORLD = 'pooled-browser-live-view';
const SIZE = '({ width: innerWidth, height: innerHeight })';

/** Returns the value of an expression in the main frame of a page. */
async function valueIn(session: CdpSession, targetId: string, expression: string): Promise<unknown> {
  // The main frame has the id of its target.
  const world = { frameId: targetId, worldName: WORLD };
  const { executionContextId: contextId } = await session.ask('Page.createIsolatedWorld', world);
  const { result } = await session.ask('Runtime.evaluate', { expression, contextId, returnByValue: true });
  return result.value;
}

/** The tab that is shown: sends its pictures to the viewer, and commands to its page. */
class ShownTab {
  readonly targetId: string;
  readonly #socket: WebSocket;
  readonly #session: Promise<CdpSession>;
  readonly #watch: Watch;
  #sending: Promise<void> = Promise.resolve();
  #waiting: Buffer | undefined;
  #size = '';
  /** Resolves after the answer to the last press or release of a mouse button. */
  #clicked: Promise<unknown> = Promise.resolve();

  constructor(browser: PicturedBrowser, cdp: CdpClient, targetId: string, socket: WebSocket) {
    this.targetId = targetId;
    this.#socket = socket;
    this.#session = cdp.attach(targetId).then((id) => new CdpSession(cdp, id));
    // The tab may close before the session starts.
    this.#session.catch(() => {});
    this.#watch = browser.pictures.watch(targetId, {
      interval: INTERVAL,
      onPicture: (jpeg) => {
        this.#waiting = jpeg;
        this.#sending = this.#sending.then(() => this.#send()).catch(() => {});
      },
    });
  }

  /** Performs an action of the viewer. Input is sent after the answer to a click before: only then, a frame of another process has the focus. */
  async perform(action: Exclude<LiveCommand, { type: 'watch' }>): Promise<void> {
    const send = async () => {
      const session = await this.#session;
      await performCommand(session, action);
      this.hint('input');
    };
    if (kindOf(action) === 'other') return send();
    const sent = this.#clicked.then(send);
    if (action.type === 'mouse' && action.action !== 'mouseMoved')
      this.#clicked = raceTimeout(CLICK_TIMEOUT, () => sent).catch(() => {});
    await sent;
  }

  hint(event: Parameters<Watch['hint']>[0]): void {
    this.#watch.hint(event);
  }

  stop(): void {
    this.#watch.stop();
    this.#session.then((session) => session.detach()).catch(() => {});
  }

  /** Sends the latest picture. A slow viewer gets fewer pictures instead of old ones. */
  async #send(): Promise<void> {
    const jpeg = this.#waiting;
    this.#waiting = undefined;
    if (!jpeg) return;
    await this.#sendSize().catch(() => {});
    await new Promise<void>((resolve) => this.#socket.send(jpeg, () => resolve()));
  }

  /** Sends the size of the page in CSS pixels, scroll bars included, if it has changed. */
  async #sendSize(): Promise<void> {
    const value = await valueIn(await this.#session, this.targetId, SIZE);
    const { width, height } = value as { width: number; height: number };
    if (this.#size === `${width}x${height}`) return;
    this.#size = `${width}x${height}`;
    send(this.#socket, { type: 'size', width, height });
  }
}
