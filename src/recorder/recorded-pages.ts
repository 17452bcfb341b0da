import { clock } from '../shared/clock.js';
import { CdpSession, type CdpClient, type EventListeners } from '../wire/cdp-client.js';
import type { EventParams } from '../wire/message.js';
import type { RecordedEvent } from './page-events.js';
import { isRecord, jsonOf } from '../shared/json.js';
import type { PicturedBrowser, Watch } from './pictures.js';

interface RecordedPagesOptions {
  /** Fewest milliseconds between pictures, if nothing happens in between. */
  readonly interval: number;
  /** @param since When the page had this picture (`clock.now()`). */
  readonly onPicture: (jpeg: Buffer, since: number) => void;
  /** Called for each new page, to enable further events. */
  readonly onPage: (page: CdpSession) => void;
  /** @param at When it arrived (`clock.now()`). */
  readonly onEvent: (event: RecordedEvent, at: number) => void;
  /** The events that it handles. */
  readonly names: readonly RecordedEvent['method'][];
}

/**
 * Emits the pictures of a browser's active page: the visible page that was last opened, shown, navigated or used. It has
 * its own CDP connection, which does not disturb the client.
 */
export class RecordedPages {
  readonly #browser: PicturedBrowser;
  readonly #options: RecordedPagesOptions;
  /** By CDP session, in the order of use. The last visible page is the active one. */
  readonly #pages = new Map<string, RecordedPage>();
  #connection!: CdpClient;
  #watched: RecordedPage | undefined;
  #watch: Watch | undefined;

  private constructor(browser: PicturedBrowser, options: RecordedPagesOptions) {
    this.#browser = browser;
    this.#options = options;
  }

  static async open(browser: PicturedBrowser, options: RecordedPagesOptions): Promise<RecordedPages> {
    const pages = new RecordedPages(browser, options);
    const names = [
      'Target.attachedToTarget',
      'Target.detachedFromTarget',
      'Page.frameNavigated',
      'Runtime.bindingCalled',
      ...options.names,
    ] as const;
    const listen = (method: RecordedEvent['method']) => (params: object, sessionId: string | undefined) =>
      pages.#onEvent({ method, params, sessionId } as RecordedEvent);
    const listeners: EventListeners = Object.fromEntries(names.map((name) => [name, listen(name)]));
    const connection = await browser.source(listeners);
    pages.#connection = connection;
    const attach = {
      autoAttach: true,
      waitForDebuggerOnStart: false,
      flatten: true,
      filter: [{ type: 'page' }],
    };
    await Promise.race([connection.send('Target.setAutoAttach', attach), connection.ended]);
    return pages;
  }

  /** Resolves when the connection is closed, by either side. */
  get closed(): Promise<unknown> {
    return this.#connection.ended;
  }

  /** Takes a picture of the active page now. */
  async picture(): Promise<Buffer | undefined> {
    return this.#watch?.take();
  }

  close(): void {
    this.#watch?.stop();
    this.#connection.close();
  }

  #onEvent(event: RecordedEvent): void {
    const { method, params, sessionId = '' } = event;
    // A picture and the event that it follows have the same time.
    const at = clock.now();
    const page = this.#pages.get(sessionId);
    if (method === 'Target.attachedToTarget') this.#add(params);
    else if (method === 'Target.detachedFromTarget') this.#pages.delete(params.sessionId ?? '');
    else if (page && method === 'Page.frameNavigated' && !isInSubframe(params))
      this.#use(sessionId, page, 'navigation', at);
    else if (page && method === 'Runtime.bindingCalled') this.#onReport(sessionId, page, params.payload, at);
    this.#follow();
    this.#options.onEvent(event, at);
  }

  #add({ sessionId, targetInfo: { targetId } }: EventParams<'Target.attachedToTarget'>): void {
    const session = new CdpSession(this.#connection, sessionId);
    this.#pages.set(session.id, { targetId, isVisible: true });
    session.send('Page.enable');
    this.#options.onPage(session);
  }

  /** A report of the script in the page: an interaction, or that the page was shown or hidden. */
  #onReport(session: string, page: RecordedPage, payload: unknown, at: number): void {
    const report = typeof payload === 'string' ? jsonOf(payload) : undefined;
    const kind = isRecord(report) ? report['kind'] : undefined;
    const wasVisible = page.isVisible;
    if (kind === 'hidden' || kind === 'visible') page.isVisible = kind === 'visible';
    if (kind !== 'hidden' && (kind !== 'visible' || !wasVisible)) this.#use(session, page, 'input', at);
  }

  /** Makes a page the active one. */
  #use(session: string, page: RecordedPage, event: Parameters<Watch['hint']>[0], at: number): void {
    this.#pages.delete(session);
    this.#pages.set(session, page);
    if (page === this.#watched) this.#watch?.hint(event, at);
  }

  /** Watches the active page, and no other. */
  #follow(): void {
    const active = [...this.#pages.values()].findLast(({ isVisible }) => isVisible);
    if (active === this.#watched) return;
    this.#watch?.stop();
    this.#watched = active;
    const { interval, onPicture } = this.#options;
    this.#watch = active && this.#browser.pictures.watch(active.targetId, { interval, onPicture });
  }
}

interface RecordedPage {
  readonly targetId: string;
  /** Pages behind other pages have no pictures. */
  isVisible: boolean;
}

function isInSubframe({ frame }: EventParams<'Page.frameNavigated'>): boolean {
  return frame.parentId !== undefined;
}
