import type { Session, Sessions, Target } from '../../wire/layer.js';
import type { DownloadPage } from './download.js';

/** Finds the page that started a download. The browser names only its frame, the library's session of the page more. */
export class DownloadPages {
  readonly #sessions: Sessions;
  readonly #ofDownload = new Map<string, DownloadPage>();

  constructor(sessions: Sessions) {
    this.#sessions = sessions;
  }

  withId(id: string): DownloadPage {
    const target = this.#sessions.target(id);
    return target ? this.#pageOf(target) : { ids: [id], contextId: undefined };
  }

  /** A session of a page has reported a download. Returns its page. */
  reported(guid: string, { target }: Session): DownloadPage {
    const page = this.#pageOf(target);
    this.#ofDownload.set(guid, page);
    return page;
  }

  /** The page that started a download in a frame. */
  of(guid: string, frameId: string): DownloadPage | undefined {
    const target = this.#sessions.target(frameId);
    return this.#ofDownload.get(guid) ?? (target && this.#pageOf(target));
  }

  ended(guid: string): void {
    this.#ofDownload.delete(guid);
  }

  #pageOf(target: Target): DownloadPage {
    const ids = new Set<string>();
    for (let one: Target | undefined = target; one && !ids.has(one.id);) {
      ids.add(one.id);
      const { openerId }: Target = one;
      one = openerId === undefined ? undefined : this.#sessions.target(openerId);
      if (openerId !== undefined && !one) ids.add(openerId);
    }
    return { ids: [...ids], contextId: target.browserContextId };
  }
}
