import { tmpdir } from 'node:os';
import { BrowserFiles } from './browser-files.js';
import { DownloadArrivals } from './download-arrivals.js';
import { DownloadFolders } from './download-folders.js';
import { DownloadPages } from './download-pages.js';
import type { BrowserDownload, DownloadListener, DownloadPage } from './download.js';
import { countDownloads } from '../../clean/open-requests.js';
import type { CommandParams, EventParams, Layer, Session } from '../../wire/layer.js';
import type { Opening } from '../../drivers/extension.js';
import type { PlaceholderFiles } from '../placeholder-files.js';
import { Uploads } from './uploads.js';

type Progress = EventParams<'Browser.downloadProgress'>;

interface PlanOfDownloads extends Opening {
  /** Receives the downloads, with the option `downloads`. */
  readonly listener: DownloadListener | undefined;
  readonly placeholders: PlaceholderFiles;
}

/**
 * Follows the downloads of a browser, and copies their files to this machine if the browser runs on another one.
 *
 * Playwright reads a download at the path where the browser saved it. Its message "completed" is held back until the file is
 * at that path on this machine, too; if the file can't be copied, the message becomes "canceled".
 */
export class DownloadWatch {
  readonly #plan: PlanOfDownloads;
  readonly #files: BrowserFiles;
  readonly #uploads: Uploads;
  readonly #folders: DownloadFolders;
  readonly #arrivals: DownloadArrivals;
  readonly #pages: DownloadPages;
  readonly #downloads = new Map<string, BrowserDownload>();
  /** Downloads that are being finished, by id. The result is whether the file is on this machine. */
  readonly #finished = new Map<string, Promise<boolean>>();
  /** Contexts in which downloads may run. Undefined is the browser's own one. */
  readonly #contexts = new Set<string | undefined>([undefined]);
  /** Reports of an end that had come before: see `#finishLate`. */
  readonly #late: Promise<unknown>[] = [];
  /** The contexts whose downloads are named by us or the library; undefined is the browser's own one, and all that have no setting. */
  readonly #named = new Map<string | undefined, boolean>();
  #own: string | undefined;
  /** Whether any message can be about a download. */
  #isActive: boolean;

  constructor(plan: PlanOfDownloads) {
    this.#plan = plan;
    this.#pages = new DownloadPages(plan.shared.sessions);
    this.#isActive = plan.listener !== undefined;
    this.#files = new BrowserFiles({
      open: plan.openCdp,
      hide: (id) => plan.shared.sessions.hide(id),
      onBegun: (params) => this.#onBegun(params),
      onProgress: (params) => void this.#onProgress(params),
    });
    const { listener, placeholders } = plan;
    placeholders.arriveFrom = (context) => this.#named.get(context) ?? this.#named.get(undefined) ?? false;
    this.#folders = new DownloadFolders(plan.isElsewhere);
    const [files, folders] = [this.#files, this.#folders];
    this.#arrivals = new DownloadArrivals({ files, folders, placeholders, listener });
    this.#uploads = new Uploads(this.#files, plan.isElsewhere ? '/tmp' : tmpdir());
    plan.shared.stack.add(this.#layer);
    void plan.own.ended.then(() => this.close());
  }

  /** Ends what is under way. */
  close(): void {
    this.#files.close();
    for (const download of this.#downloads.values())
      this.#fail(download, new Error('the connection to the browser was closed'));
  }

  /**
   * Prepares `saveAll`. The downloads of each context that the library opens from now on are saved.
   *
   * @param folder An empty folder of this machine.
   */
  prepare(folder: string): void {
    this.#own = folder;
    this.#files.open().catch(() => {});
  }

  /**
   * Makes the browser save its downloads for us, for a library that does not. Call it after the library has connected: WebDriver
   * BiDi sets its own behavior when it starts.
   *
   * @param browserContextId Of a context; undefined is the browser's own one.
   */
  async saveAll(browserContextId: string | undefined): Promise<void> {
    this.#contexts.add(browserContextId);
    const downloadPath = this.#folders.add(this.#own!, false);
    const behavior = { behavior: 'allowAndName', downloadPath, eventsEnabled: true };
    this.#named.set(browserContextId, true);
    await this.#files.send('Browser.setDownloadBehavior', { ...behavior, browserContextId });
  }

  /** Whether the browser has begun a download that it has not announced. */
  async isOneComing(): Promise<boolean> {
    // A second WebSocket would cost more.
    const client = this.#files.isOpen ? this.#files : this.#plan.own;
    const downloads = await countDownloads((method, params) => client.send(method, params));
    // A browser that counts nothing has had no download.
    return (
      (downloads?.open ?? 0) > [...this.#downloads.keys()].filter((guid) => !this.#finished.has(guid)).length
    );
  }

  async cancel({ guid }: BrowserDownload): Promise<void> {
    this.#cancelArrival(guid);
    const cancel = (browserContextId: string | undefined) =>
      this.#files.send('Browser.cancelDownload', { guid, browserContextId }).catch(() => {});
    await Promise.all([...this.#contexts].map(cancel));
  }

  pageOf(id: string): DownloadPage {
    return this.#pages.withId(id);
  }

  /** Waits until the files on the browser's machine are empty. Rejects if one is not. */
  async emptyFiles(): Promise<void> {
    this.#arrivals.endAll();
    // The file of a download is emptied after its copy.
    await Promise.all(this.#finished.values());
    for (const late of this.#late) await late;
    await this.#arrivals.emptyFiles();
    await this.#uploads.emptyFiles();
    await this.#files.closePage();
  }

  /** Follows what the library downloads and uploads. What further clients download arrives where they say. */
  readonly #layer: Layer = {
    name: 'files',
    commands: {
      'DOM.setFileInputFiles': async ({ params, client }, next) =>
        client.kind === 'library' ? next(await this.#uploads.copy(params.files)) : next(),
      'input.setFiles': async ({ params, client }, next) =>
        client.kind === 'library' ? next(await this.#uploads.copy(params.files)) : next(),
      'Browser.setDownloadBehavior': ({ params, client }, next) => {
        if (client.kind === 'library') return next(this.#noteBehavior(params));
        this.#named.set(params.browserContextId, false);
        return next();
      },
      'Browser.cancelDownload': ({ params, client }, next) => {
        if (client.kind === 'library') this.#cancelArrival(params.guid ?? '');
        return next();
      },
      // The library waits for its new context until downloads are saved there.
      'Target.createBrowserContext': async ({ client }, next) => {
        const answer = await next();
        if (client.kind === 'library') await this.#saveIn(answer.result.browserContextId);
        return answer;
      },
      'browser.createUserContext': async ({ client }, next) => {
        const answer = await next();
        if (client.kind === 'library') await this.#saveIn(answer.result.userContext);
        return answer;
      },
    },
    events: {
      'Browser.downloadWillBegin': ({ params, client }, next) => {
        if (client.kind === 'library') this.#onBegun(params);
        return next();
      },
      'Browser.downloadProgress': ({ params, client }, next) => {
        const held = client.kind === 'library' ? this.#onProgress(params) : undefined;
        return held ? passLater(held, next) : next();
      },
      'Page.downloadWillBegin': ({ params, client, session }, next) => {
        if (this.#isActive && client.kind === 'library' && session) this.#notePage(params.guid, session);
        return next();
      },
    },
  };

  /** A context that was closed in the meantime has no downloads. */
  async #saveIn(context: string): Promise<void> {
    if (this.#own) await this.saveAll(context).catch(() => {});
  }

  /** Reads where a library lets the browser save its downloads. Returns another folder if the browser can't save there. */
  #noteBehavior({
    behavior,
    downloadPath: path,
    browserContextId,
  }: CommandParams<'Browser.setDownloadBehavior'>): { downloadPath: string } | undefined {
    const isNamed = behavior === 'allowAndName' && path !== undefined;
    this.#named.set(browserContextId, isNamed);
    if (!isNamed) return undefined;
    this.#isActive = true;
    if (browserContextId !== undefined) this.#contexts.add(browserContextId);
    const downloadPath = this.#folders.add(path, true);
    return downloadPath === path ? undefined : { downloadPath };
  }

  #onBegun({ guid, url, suggestedFilename, frameId = '' }: EventParams<'Browser.downloadWillBegin'>): void {
    if (!this.#isActive || this.#downloads.has(guid) || this.#finished.has(guid)) return;
    const page = this.#pages.of(guid, frameId);
    const download = { guid, url, suggestedFilename, page, received: 0, total: 0 };
    this.#downloads.set(guid, download);
    this.#plan.listener?.begun(download);
  }

  /** The event of the page may come before that of the browser, or after it. */
  #notePage(guid: string, session: Session): void {
    const page = this.#pages.reported(guid, session);
    const download = this.#downloads.get(guid);
    if (download) download.page = page;
  }

  /** Holds back the end of a download until its file is here. */
  #onProgress(progress: Progress): Promise<object | undefined> | undefined {
    const finished = this.#isActive ? this.#progress(progress) : undefined;
    return finished?.then((isHere) => (isHere ? undefined : { state: 'canceled' }));
  }

  /** Returns a promise for the end of a download whose file the browser has. */
  #progress({ guid, state, filePath, receivedBytes, totalBytes }: Progress): Promise<boolean> | undefined {
    const download = this.#downloads.get(guid);
    if (!download) {
      const late = state === 'completed' ? this.#finishLate(guid, filePath) : undefined;
      if (late) this.#late.push(late);
      return late;
    }
    const { listener } = this.#plan;
    download.received = receivedBytes ?? download.received;
    download.total = totalBytes ?? download.total;
    if (state === 'completed') {
      let finished = this.#finished.get(guid);
      if (!finished) this.#finished.set(guid, (finished = this.#finish(download, filePath)));
      return finished;
    }
    if (state === 'canceled')
      this.#fail(download, new Error('it was canceled, or its response was incomplete'));
    else {
      listener?.progressed(download);
      if (listener) this.#checkSize(download);
    }
    return undefined;
  }

  #checkSize(download: BrowserDownload): void {
    try {
      this.#arrivals.check(Math.max(download.received, download.total));
    } catch (error) {
      if (this.#fail(download, error as Error)) void this.cancel(download);
    }
  }

  /** Another socket may have reported the end before, or the browser completed a download that it should cancel. */
  #finishLate(guid: string, filePath: string | undefined): Promise<boolean> | undefined {
    return this.#finished.get(guid)?.then(async (isHere) => {
      if (!isHere) await this.#arrivals.remove(guid, filePath);
      return isHere;
    });
  }

  /** Returns false if the download has ended before. */
  #fail(download: BrowserDownload, error: Error): boolean {
    if (this.#finished.has(download.guid)) return false;
    this.#arrivals.drop(download);
    this.#finished.set(download.guid, Promise.resolve(false));
    this.#downloads.delete(download.guid);
    this.#pages.ended(download.guid);
    this.#plan.listener?.failed(download, error);
    return true;
  }

  /** Resolves to whether the file is on this machine. Never rejects. */
  async #finish(download: BrowserDownload, filePath: string | undefined): Promise<boolean> {
    const { listener } = this.#plan;
    let isHere = false;
    try {
      const file = await this.#arrivals.bring(download, filePath);
      isHere = true;
      if (file) await listener?.arrived(download, file.path, file.mustStay);
    } catch (error) {
      listener?.failed(download, error as Error);
    }
    this.#downloads.delete(download.guid);
    this.#pages.ended(download.guid);
    return isHere;
  }

  #cancelArrival(guid: string): undefined {
    if (this.#downloads.has(guid)) this.#arrivals.cancel(guid);
  }
}

async function passLater(
  held: Promise<object | undefined>,
  next: (changes?: object) => void | Promise<void>,
): Promise<void> {
  await next(await held);
}
