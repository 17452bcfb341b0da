import type { DownloadPage } from './download.js';
import type { EventParams } from './message.js';

/** Finds the page that started a download. The browser names only its frame, the library's session of the page more. */
export class DownloadPages {
  readonly #pages = new Map<string, DownloadPage>();
  readonly #ofSession = new Map<string, DownloadPage>();
  readonly #ofDownload = new Map<string, DownloadPage>();

  /** A client has attached to a page. */
  attached({ sessionId, targetInfo }: EventParams<'Target.attachedToTarget'>): void {
    const { targetId, browserContextId, openerId } = targetInfo;
    const openers = openerId === undefined ? [] : (this.#pages.get(openerId)?.ids ?? [openerId]);
    const page = { ids: [targetId, ...openers], contextId: browserContextId };
    this.#ofSession.set(sessionId, page);
    this.#pages.set(targetId, page);
  }

  /** The page behind the id of a page. */
  withId(id: string): DownloadPage {
    return this.#pages.get(id) ?? { ids: [id], contextId: undefined };
  }

  /** A session of a page has reported a download. Returns its page, if that is known. */
  reported(guid: string, sessionId: string): DownloadPage | undefined {
    const page = this.#ofSession.get(sessionId);
    if (page) this.#ofDownload.set(guid, page);
    return page;
  }

  /** The page that started a download in a frame. */
  of(guid: string, frameId: string): DownloadPage | undefined {
    return this.#ofDownload.get(guid) ?? this.#pages.get(frameId);
  }

  ended(guid: string): void {
    this.#ofDownload.delete(guid);
  }
}
