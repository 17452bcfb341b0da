import { CdpConnection, CdpSession, type CdpBrowser, type CdpEvent } from '../net/cdp-connection.js';
import { startScreencast } from './screencast.js';

interface RecordedPagesOptions {
  /** Milliseconds between frames. */
  readonly interval: number;
  readonly onFrame: (jpeg: Buffer) => void;
  /** Called for each new page, to enable further events. */
  readonly onPage: (page: CdpSession) => void;
  readonly onEvent: (event: CdpEvent) => void;
}

/**
 * Emits the frames of a browser's active page: the visible page that was last opened, shown, navigated or used. It has
 * its own CDP connection, which does not disturb the client. Every page has a screencast, but only the frames of the
 * active page are acknowledged: Chromium stops the other screencasts after their first frames.
 */
export class RecordedPages {
  readonly #options: RecordedPagesOptions;
  /** By CDP session, in the order of use. The last visible page is the active one. */
  readonly #pages = new Map<string, RecordedPage>();
  #connection!: CdpConnection;

  private constructor(options: RecordedPagesOptions) {
    this.#options = options;
  }

  static async open(browser: CdpBrowser, options: RecordedPagesOptions): Promise<RecordedPages> {
    const pages = new RecordedPages(options);
    const connection = await CdpConnection.open(browser, (event) => pages.#onEvent(event));
    pages.#connection = connection;
    const attach = {
      autoAttach: true,
      waitForDebuggerOnStart: false,
      flatten: true,
      filter: [{ type: 'page' }],
    };
    await Promise.race([connection.ask('Target.setAutoAttach', attach), connection.closed]);
    return pages;
  }

  /** Resolves when the connection is closed, by either side. */
  get closed(): Promise<void> {
    return this.#connection.closed;
  }

  /** Takes a JPEG screenshot of the active page. */
  async screenshot(): Promise<Buffer | undefined> {
    return this.#active?.screenshot();
  }

  close(): void {
    for (const page of this.#pages.values()) page.stop();
    this.#connection.close();
  }

  #onEvent(event: CdpEvent): void {
    const { method, params, sessionId = '' } = event;
    const page = this.#pages.get(sessionId);
    if (method === 'Target.attachedToTarget') this.#add(String(params['sessionId']));
    else if (method === 'Target.detachedFromTarget') this.#remove(String(params['sessionId']));
    else if (page && method === 'Page.screencastFrame') return this.#onFrame(page, params);
    else if (page && method === 'Page.screencastVisibilityChanged')
      this.#onVisibility(sessionId, page, params['visible'] === true);
    else if (page && ACTIVATING.has(method) && !isInSubframe(params)) this.#activate(sessionId, page);
    this.#options.onEvent(event);
  }

  #add(session: string): void {
    const page = new RecordedPage(new CdpSession(this.#connection, session), this.#options.interval);
    this.#pages.set(session, page);
    page.session.send('Page.enable');
    page.restart();
    this.#options.onPage(page.session);
  }

  #remove(session: string): void {
    this.#pages.get(session)?.stop();
    this.#change(() => this.#pages.delete(session));
  }

  #onFrame(page: RecordedPage, { data, sessionId }: Record<string, unknown>): void {
    if (page !== this.#active) return;
    this.#options.onFrame(Buffer.from(String(data), 'base64'));
    page.acknowledge(sessionId);
  }

  #onVisibility(session: string, page: RecordedPage, isVisible: boolean): void {
    const becomesVisible = isVisible && !page.isVisible;
    this.#change(() => (page.isVisible = isVisible));
    if (becomesVisible) this.#activate(session, page);
  }

  #activate(session: string, page: RecordedPage): void {
    this.#change(() => {
      this.#pages.delete(session);
      this.#pages.set(session, page);
    });
  }

  /** Restarts the screencast of a new active page, which sends no frames while earlier ones are unacknowledged. */
  #change(update: () => void): void {
    const before = this.#active;
    update();
    if (this.#active !== before) this.#active?.restart();
  }

  get #active(): RecordedPage | undefined {
    return [...this.#pages.values()].findLast(({ isVisible }) => isVisible);
  }
}

/** Events that make their page the active one. */
const ACTIVATING = new Set(['Page.frameNavigated', 'Runtime.bindingCalled']);

function isInSubframe({ frame }: Record<string, unknown>): boolean {
  return (frame as { parentId?: string } | undefined)?.parentId !== undefined;
}

/** Maximum width and height of a frame, in pixels. */
const MAX_SIDE = 1280;

const JPEG = { format: 'jpeg', quality: 70 };

/** Intervals without a frame after which the screencast restarts. */
const RESTART_AFTER = 2;

/** The screencast of one page. */
class RecordedPage {
  /** Pages behind other pages send no frames. */
  isVisible = false;
  readonly session: CdpSession;
  readonly #interval: number;
  readonly #timers = new Set<NodeJS.Timeout>();
  #nextFrameAt = 0;
  #restartTimer: NodeJS.Timeout | undefined;

  /** @param interval Milliseconds between frames. */
  constructor(session: CdpSession, interval: number) {
    this.session = session;
    this.#interval = interval;
  }

  /** Takes a JPEG screenshot. A page that is busy may answer late or never. */
  async screenshot(): Promise<Buffer> {
    const { data } = await this.session.ask('Page.captureScreenshot', JPEG);
    return Buffer.from(String(data), 'base64');
  }

  /** Restarts the screencast. Its first frame comes immediately, even if the page does not change. */
  restart(): void {
    this.session.send('Page.stopScreencast');
    startScreencast(this.session, { ...JPEG, maxWidth: MAX_SIDE, maxHeight: MAX_SIDE }).catch(() => {});
  }

  /**
   * Acknowledges a frame when the next one is due: until then, Chromium renders no frames, which saves CPU. It drops
   * changes meanwhile, perhaps the last change of the page. So the screencast restarts if no frame follows.
   */
  acknowledge(frame: unknown): void {
    clearTimeout(this.#restartTimer);
    const now = performance.now();
    const wait = Math.max(0, this.#nextFrameAt - now);
    this.#nextFrameAt = now + wait + this.#interval;
    this.#after(wait, () => {
      this.session.send('Page.screencastFrameAck', { sessionId: frame });
      if (wait > 0)
        this.#restartTimer = this.#after(RESTART_AFTER * this.#interval + 50, () => this.restart());
    });
  }

  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }

  #after(milliseconds: number, call: () => void): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      call();
    }, milliseconds);
    this.#timers.add(timer);
    return timer;
  }
}
