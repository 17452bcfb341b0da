import { CdpConnection, type CdpEvent, type DevToolsAddress } from '../browser/cdp-connection.js';
import { RecordedPage } from './recorded-page.js';

/** What is told of recorded pages. */
export interface RecordedPagesHost {
  /** Milliseconds between frames. */
  readonly interval: number;
  readonly onFrame: (jpeg: Buffer) => void;
  /** A page has come: what else is to be heard of it is switched on here. */
  readonly onPage: (page: RecordedPage) => void;
  readonly onEvent: (event: CdpEvent) => void;
}

/**
 * The frames of a browser's pages, on a connection of its own: the client notices nothing. All pages cast, and the
 * frames of one are taken: the one that was last opened, shown, navigated or touched. The others are sent no
 * acknowledgement, so that they cost nothing after their first frames.
 */
export class RecordedPages {
  readonly #host: RecordedPagesHost;
  /** By CDP session; the one whose frames are taken is the last. */
  readonly #pages = new Map<string, RecordedPage>();
  #connection!: CdpConnection;

  private constructor(host: RecordedPagesHost) {
    this.#host = host;
  }

  static async open(browser: DevToolsAddress, host: RecordedPagesHost): Promise<RecordedPages> {
    const pages = new RecordedPages(host);
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

  /** Resolves when the browser is gone, or `close` was called. */
  get closed(): Promise<void> {
    return this.#connection.closed;
  }

  /** A JPEG picture of what is shown now. */
  async picture(): Promise<Buffer | undefined> {
    return this.#followed?.picture();
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
      this.#onVisible(sessionId, page, params['visible'] === true);
    else if (page && MOVES.has(method) && !isInFrame(params)) this.#follow(sessionId, page);
    this.#host.onEvent(event);
  }

  #add(session: string): void {
    const page = new RecordedPage(this.#connection, session, this.#host.interval);
    this.#pages.set(session, page);
    page.send('Page.enable');
    page.restart();
    this.#host.onPage(page);
  }

  #remove(session: string): void {
    this.#pages.get(session)?.stop();
    this.#change(() => this.#pages.delete(session));
  }

  #onFrame(page: RecordedPage, { data, sessionId }: Record<string, unknown>): void {
    if (page !== this.#followed) return;
    this.#host.onFrame(Buffer.from(String(data), 'base64'));
    page.acknowledge(sessionId);
  }

  #onVisible(session: string, page: RecordedPage, isVisible: boolean): void {
    const isShown = isVisible && !page.isVisible;
    this.#change(() => (page.isVisible = isVisible));
    if (isShown) this.#follow(session, page);
  }

  #follow(session: string, page: RecordedPage): void {
    this.#change(() => {
      this.#pages.delete(session);
      this.#pages.set(session, page);
    });
  }

  /** A page that is followed from now on may have no frame left that it was not acknowledged. */
  #change(update: () => void): void {
    const before = this.#followed;
    update();
    if (this.#followed !== before) this.#followed?.restart();
  }

  get #followed(): RecordedPage | undefined {
    return [...this.#pages.values()].findLast(({ isVisible }) => isVisible);
  }
}

/** What makes a page the one to follow. */
const MOVES = new Set(['Page.frameNavigated', 'Runtime.bindingCalled']);

function isInFrame({ frame }: Record<string, unknown>): boolean {
  return (frame as { parentId?: string } | undefined)?.parentId !== undefined;
}
