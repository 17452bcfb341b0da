import { raceTimeout } from '../../shared/abort.js';
import type { CdpClient, Target } from '../../wire/cdp-client.js';
import { sourceOver } from '../../wire/cdp-source.js';
import type { Chromium } from '../browser/chromium.js';
import { PageTitles, type LiveTab } from '../../live/page-titles.js';

export interface ShownPage {
  readonly title: string;
  /** Without query, fragment, user and password, which may hold secrets. */
  readonly url: string;
}

/** A small picture of a page. */
interface Thumbnail {
  readonly jpeg: Buffer;
  /** Changes with each picture. */
  readonly number: number;
}

/** Watches the pages of browsers, each through a separate CDP connection, which does not disturb the client. */
export class ShownPages {
  readonly #onChange: () => void;
  readonly #watched = new Map<Chromium, WatchedBrowser>();

  /** @param onChange Called after a page has opened, closed or navigated, or has another title. */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Watches these browsers, and no others. */
  watch(browsers: readonly Chromium[]): void {
    for (const [browser, watched] of this.#watched) {
      if (browsers.includes(browser)) continue;
      this.#watched.delete(browser);
      watched.close();
    }
    for (const browser of browsers)
      if (!this.#watched.has(browser))
        this.#watched.set(browser, new WatchedBrowser(browser, this.#onChange));
  }

  /** The page of a watched browser that was last opened or navigated. */
  pageOf(browser: Chromium): ShownPage | undefined {
    return this.#watched.get(browser)?.page;
  }

  thumbnailOf(browser: Chromium): Thumbnail | undefined {
    const watched = this.#watched.get(browser);
    return watched?.isEmpty ? undefined : watched?.thumbnail;
  }

  /** Reads the titles and takes a thumbnail of each browser, one after another. */
  async refresh(): Promise<void> {
    for (const watched of this.#watched.values()) await watched.refresh();
  }
}

/** There is nothing to see on this page. */
const EMPTY_PAGE = 'about:blank';

/** Milliseconds for a thumbnail. A page in the background sends none. */
const PICTURE_TIMEOUT = 2_000;

class WatchedBrowser {
  thumbnail: Thumbnail | undefined;
  readonly #browser: Chromium;
  readonly #onChange: () => void;
  /** By target id, in the order of use. */
  readonly #pages = new Map<string, LiveTab>();
  readonly #titles: PageTitles;
  readonly #cdp: Promise<CdpClient>;

  constructor(browser: Chromium, onChange: () => void) {
    this.#browser = browser;
    this.#onChange = onChange;
    this.#titles = new PageTitles(this.#pages, onChange);
    this.#cdp = sourceOver(browser.pipe)({
      'Target.targetCreated': ({ targetInfo }) => this.#update(targetInfo),
      'Target.targetInfoChanged': ({ targetInfo }) => this.#update(targetInfo),
      'Target.targetDestroyed': ({ targetId }) => {
        this.#pages.delete(targetId);
        onChange();
      },
    });
    const params = { discover: true, filter: [{ type: 'page' }, { exclude: true }] };
    // Fails when the browser has ended.
    this.#cdp.then((cdp) => cdp.send('Target.setDiscoverTargets', params)).catch(() => {});
  }

  get page(): ShownPage | undefined {
    const { url, title } = this.#pages.get(this.#current ?? '') ?? {};
    if (url === undefined || title === undefined) return undefined;
    return { title: isUrl(title, url) ? '' : title, url: withoutQuery(url) };
  }

  /** Without a picture: one of the page before would show what the browser no longer shows. */
  get isEmpty(): boolean {
    return this.page?.url === EMPTY_PAGE;
  }

  close(): void {
    this.#titles.stop();
    this.#cdp.then((cdp) => cdp.close()).catch(() => {});
  }

  /** Never rejects: without a new picture, the last one stays. */
  async refresh(): Promise<void> {
    if (this.isEmpty) return void (this.thumbnail = undefined);
    const jpeg = await this.#cdp
      .then((cdp) => this.#titles.read(cdp))
      .then(() => (this.isEmpty ? undefined : this.#takePicture()))
      .catch(() => undefined);
    if (jpeg && !this.thumbnail?.jpeg.equals(jpeg))
      this.thumbnail = { jpeg, number: (this.thumbnail?.number ?? 0) + 1 };
  }

  async #takePicture(): Promise<Buffer | undefined> {
    const targetId = this.#current;
    if (targetId === undefined) return undefined;
    const watch = this.#browser.pictures.watch(targetId, { interval: PICTURE_TIMEOUT, onPicture: () => {} });
    const late = () => new Error('The page is in the background or busy.');
    return await raceTimeout(PICTURE_TIMEOUT, () => watch.take(), late).finally(() => watch.stop());
  }

  #update({ targetId, title = '', url }: Target): void {
    // A navigated page becomes the last one.
    if (this.#pages.get(targetId)?.url !== url) this.#pages.delete(targetId);
    this.#pages.set(targetId, { id: targetId, title, url });
    this.#cdp.then((cdp) => this.#titles.readSoon(cdp)).catch(() => {});
    this.#onChange();
  }

  /** The page that was last opened or navigated; an empty page only if there is no other. */
  get #current(): string | undefined {
    const pages = [...this.#pages];
    return (pages.findLast(([, { url }]) => url !== EMPTY_PAGE) ?? pages.at(-1))?.[0];
  }
}

/** Chromium gives a page without a title its URL as title, without the scheme and with the query. */
function isUrl(title: string, url: string): boolean {
  const { host, protocol } = URL.canParse(url) ? new URL(url) : { host: '', protocol: url };
  return title.startsWith(host === '' ? protocol : host);
}

function withoutQuery(text: string): string {
  if (!URL.canParse(text)) return '';
  const { protocol, host, pathname } = new URL(text);
  if (protocol === 'data:' || protocol === 'blob:') return protocol;
  return host === '' ? `${protocol}${pathname}` : `${protocol}//${host}${pathname}`;
}
