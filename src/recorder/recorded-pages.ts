import { clock } from '../shared/clock.js';
import { CdpSession, type CdpClient, type EventListeners } from '../wire/cdp-client.js';
import type { EventParams } from '../wire/message.js';
import { PageMasks } from './masks/masks.js';
import type { RecorderWorld } from './masks/mask-script.js';
import type { RecordedEvent } from './page-events.js';
import { isRecord, jsonOf } from '../shared/json.js';
import type { PicturedBrowser, Watch } from './pictures.js';

interface RecordedPagesOptions {
  /** Fewest milliseconds between pictures, if nothing happens in between. */
  readonly interval: number;
  /**
   * @param since When the page had this picture (`clock.now()`).
   * @param isCovered A part of it is covered.
   */
  readonly onPicture: (jpeg: Buffer, since: number, isCovered: boolean) => void;
  /** Another page is shown. @param at Since when (`clock.now()`). */
  readonly onShown: (at: number) => void;
  /** Called for each new page, to enable further events. */
  readonly onPage: (page: CdpSession) => void;
  /** Called for each frame of another site, which has a session of its own. */
  readonly onFrame: (frame: CdpSession) => void;
  /** @param at When it arrived (`clock.now()`). */
  readonly onEvent: (event: RecordedEvent, at: number) => void;
  /** The events that it handles. */
  readonly names: readonly RecordedEvent['method'][];
  /** Its script reports what the pictures do not show. */
  readonly world: RecorderWorld;
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
  /** The pages of frames that have sessions of their own, by session. */
  readonly #frames = new Map<string, RecordedPage>();
  #connection!: CdpClient;
  #watched: RecordedPage | undefined;
  #watch: Watch | undefined;
  /** Its picture was wanted: it stays the active page until it is closed, or another page is used. */
  #pinned: RecordedPage | undefined;
  /** A picture of the active page was emitted. */
  #isSeen = false;

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

  /** Takes a picture now. @param of Becomes the active page. Default: the active page. */
  async picture(of?: PageOfPicture): Promise<void> {
    const pages = [...this.#pages.values()];
    const given = of && pages.find(({ targetId }) => targetId === of.pageId);
    const isMeant = (page: RecordedPage) =>
      page === given || (of?.isContext && page.contextId === given?.contextId);
    const page = given && pages.findLast((one) => one.isVisible && isMeant(one));
    if (page) this.#use(page, 'input', clock.now());
    this.#pinned = page;
    this.#follow();
    // A navigation that has just ended, or masks that are not known yet, cost a picture.
    for (let tries = 0; tries < MOST_TRIES && this.#watch; tries++) {
      await this.#watch.take().catch(() => {});
      if (this.#isSeen) return;
    }
  }

  /** Emits a picture soon, also if it does not differ. */
  repeat(): void {
    this.#watch?.repeat();
  }

  close(): void {
    this.#watch?.stop();
    this.#connection.close();
  }

  #onEvent(event: RecordedEvent): void {
    const { method, params, sessionId = '' } = event;
    // A picture and the event that it follows have the same time.
    const at = clock.now();
    const outer = this.#pages.get(sessionId) ?? this.#frames.get(sessionId);
    if (method === 'Target.attachedToTarget' && outer) return this.#addFrame(outer, params);
    if (method === 'Target.detachedFromTarget' && this.#removeFrame(params.sessionId ?? '')) return;
    // Of a frame, only its reports count: it is no page.
    if (this.#frames.has(sessionId) && method !== 'Runtime.bindingCalled') return;
    if (method === 'Target.attachedToTarget') this.#add(params);
    else if (method === 'Target.detachedFromTarget') this.#pages.delete(params.sessionId ?? '');
    else if (outer && method === 'Page.frameNavigated' && params.frame.parentId === undefined)
      this.#use(outer, 'navigation', at);
    else if (outer && method === 'Runtime.bindingCalled') this.#onReport(sessionId, outer, params, at);
    this.#follow();
    this.#options.onEvent(event, at);
  }

  #add({ sessionId, targetInfo }: EventParams<'Target.attachedToTarget'>): void {
    const { targetId, browserContextId: contextId } = targetInfo;
    const session = new CdpSession(this.#connection, sessionId);
    const masks = new PageMasks(session, targetId, this.#options.world);
    this.#pages.set(session.id, { session, targetId, contextId, masks, isVisible: true });
    session.send('Page.enable');
    session.send('Target.setAutoAttach', ATTACH_FRAMES);
    this.#options.onPage(session);
  }

  #addFrame(page: RecordedPage, { sessionId }: EventParams<'Target.attachedToTarget'>): void {
    const session = new CdpSession(this.#connection, sessionId);
    this.#frames.set(session.id, page);
    session.send('Page.enable');
    session.send('Target.setAutoAttach', ATTACH_FRAMES);
    this.#options.onFrame(session);
  }

  /** @returns Whether it was the session of a frame. */
  #removeFrame(session: string): boolean {
    this.#frames.get(session)?.masks.remove(session);
    return this.#frames.delete(session);
  }

  /** A report of the script in the page: an interaction, a new document, or that the page was shown or hidden. */
  #onReport(
    session: string,
    page: RecordedPage,
    { payload, executionContextId }: EventParams<'Runtime.bindingCalled'>,
    at: number,
  ): void {
    const report = jsonOf(payload);
    const kind = isRecord(report) ? report['kind'] : undefined;
    if (kind === 'document') {
      page.masks.add(new CdpSession(this.#connection, session), executionContextId);
      // Until now, the frame was covered.
      if (session !== page.session.id && page === this.#watched) this.#watch?.repeat();
      return;
    }
    const wasVisible = page.isVisible;
    if (kind === 'hidden' || kind === 'visible') page.isVisible = kind === 'visible';
    if (kind !== 'hidden' && (kind !== 'visible' || !wasVisible)) this.#use(page, 'input', at);
  }

  /** Makes a page the active one. */
  #use(page: RecordedPage, event: Parameters<Watch['hint']>[0], at: number): void {
    this.#pinned = undefined;
    this.#pages.delete(page.session.id);
    this.#pages.set(page.session.id, page);
    if (page === this.#watched) this.#watch?.hint(event, at);
  }

  /** Watches the active page, and no other. */
  #follow(): void {
    const pages = [...this.#pages.values()];
    const pinned = pages.find((page) => page === this.#pinned);
    const active = pinned ?? pages.findLast(({ isVisible }) => isVisible);
    if (active === this.#watched) return;
    this.#watch?.stop();
    this.#watched = active;
    if (!active) return void (this.#watch = undefined);
    const { interval, onShown } = this.#options;
    this.#isSeen = false;
    onShown(clock.now());
    const onPicture: RecordedPagesOptions['onPicture'] = (...picture) => {
      this.#isSeen = true;
      this.#options.onPicture(...picture);
    };
    const mask = () => active.masks.begin();
    this.#watch = this.#browser.pictures.watch(active.targetId, { interval, onPicture, mask });
  }
}

/** Pictures to take until one is emitted. */
const MOST_TRIES = 20;

/** The page of a task. */
export interface PageOfPicture {
  /** Id of its target. */
  readonly pageId: string;
  /** The last one in use of its context is meant. */
  readonly isContext: boolean;
}

/** Frames of other sites, in processes of their own. */
const ATTACH_FRAMES = {
  autoAttach: true,
  waitForDebuggerOnStart: false,
  flatten: true,
  filter: [{ type: 'iframe' }],
};

interface RecordedPage {
  readonly session: CdpSession;
  readonly targetId: string;
  readonly contextId: string | undefined;
  readonly masks: PageMasks;
  /** Pages behind other pages have no pictures. */
  isVisible: boolean;
}
