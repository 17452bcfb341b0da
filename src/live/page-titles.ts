import { clock } from '../shared/clock.js';
import type { CdpClient } from '../wire/cdp-client.js';

/** A page of a browser. */
export interface LiveTab {
  readonly id: string;
  readonly title: string;
  readonly url: string;
}

/** Milliseconds until a page that has navigated has its title. */
const TITLE_DELAY = 500;

/** Reads the titles of pages. Chromium reports navigations, but no titles of pages to which a client is connected. */
export class PageTitles {
  readonly #pages: Map<string, LiveTab>;
  readonly #onRead: () => void;
  #timer: NodeJS.Timeout | undefined;

  /** @param pages The pages by their ids, whose titles are replaced. */
  constructor(pages: Map<string, LiveTab>, onRead: () => void) {
    this.#pages = pages;
    this.#onRead = onRead;
  }

  /** Reads the titles when a page that has just navigated has one. */
  readSoon(cdp: CdpClient): void {
    this.stop();
    const read = () => this.read(cdp).then(this.#onRead, () => {});
    this.#timer = clock.setTimeout(() => void read(), TITLE_DELAY).unref();
  }

  async read(cdp: CdpClient): Promise<void> {
    for (const { targetId: id, url, title = '' } of await cdp.targets())
      if (this.#pages.get(id)?.url === url) this.#pages.set(id, { id, url, title });
  }

  stop(): void {
    clock.clearTimeout(this.#timer);
  }
}
