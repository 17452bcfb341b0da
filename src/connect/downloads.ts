import { rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { Readable } from 'node:stream';
import { BrowserFiles } from './browser-files.js';
import { LARGEST_DOWNLOAD } from './connector.js';
import { countDownloads } from './lasting-requests.js';
import type { MessageFilter, MessageRules } from './message-filter.js';
import type { CommandParams, EventParams } from './message.js';
import type { OpenCdp, Socket } from './socket.js';
import { StandIns, writeContent } from './stand-ins.js';
import { Uploads } from './uploads.js';

type Progress = EventParams<'Browser.downloadProgress'>;

/** A download of the browser, as far as it is known. */
export interface BrowserDownload {
  readonly guid: string;
  readonly url: string;
  readonly suggestedFilename: string;
  /** The page that started it. Undefined if that is not known. */
  page: DownloadPage | undefined;
  /** Bytes so far, and in total; 0 if the server did not send the size. */
  received: number;
  total: number;
}

/** The page that started a download. */
export interface DownloadPage {
  /** Its id, and those of the pages that opened it. */
  readonly ids: readonly string[];
  readonly contextId: string | undefined;
}

/** Receives the downloads of a browser. */
export interface DownloadListener {
  /** Largest file in bytes. */
  readonly maxSize: number;
  begun(download: BrowserDownload): void;
  /** @param copied Bytes that were copied from the browser's machine; undefined while the browser receives the file. */
  progressed(download: BrowserDownload, copied?: number): void;
  /**
   * The file is on this machine.
   *
   * @param mustStay Somebody else also uses the file: it must stay at its path.
   */
  arrived(download: BrowserDownload, path: string, mustStay: boolean): Promise<void>;
  failed(download: BrowserDownload, error: Error): void;
}

/** Where the browser saves its downloads, and the folder of this machine that stands for it. */
interface Folders {
  readonly there: string;
  readonly here: string;
  /** Whether an automation library expects the files here. */
  readonly mustStay: boolean;
}

interface PlanOfDownloads {
  readonly socket: Pick<Socket, 'detached'>;
  readonly filter: MessageFilter;
  readonly openCdp: OpenCdp;
  /** False if the browser may run on this machine. */
  readonly isElsewhere: boolean;
  /** Receives the downloads, with the option `downloads`. */
  readonly listener: DownloadListener | undefined;
  readonly standIns?: StandIns;
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
  readonly #downloads = new Map<string, BrowserDownload>();
  /** Downloads that are being finished, by id. The result is whether the file is on this machine. */
  readonly #finished = new Map<string, Promise<boolean>>();
  readonly #folders: Folders[] = [];
  /** Contexts in which downloads may run. Undefined is the browser's own one. */
  readonly #contexts = new Set<string | undefined>([undefined]);
  readonly #pages = new Map<string, DownloadPage>();
  readonly #pageOfSession = new Map<string, DownloadPage>();
  readonly #pageOfDownload = new Map<string, DownloadPage>();
  readonly #emptied: Promise<unknown>[] = [];
  /** The contexts whose downloads are named by us or the library; undefined is the browser's own one, and all that have no setting. */
  readonly #named = new Map<string | undefined, boolean>();
  /** Ends the arrival of a file that had a stand-in, by the id of the download. */
  readonly #arriving = new Map<string, () => void>();
  readonly #canceled = new Set<string>();
  readonly #standIns: StandIns;
  #own: string | undefined;
  /** Whether any message can be about a download. */
  #isActive: boolean;

  constructor(plan: PlanOfDownloads) {
    this.#plan = plan;
    this.#isActive = plan.listener !== undefined;
    this.#files = new BrowserFiles({
      open: plan.openCdp,
      hide: (id) => plan.filter.hide(id),
      onBegun: (params) => this.#onBegun(params),
      onProgress: (params) => void this.#onProgress(params),
    });
    this.#standIns = plan.standIns ?? new StandIns();
    this.#standIns.arriveFrom = (context) => this.#named.get(context) ?? this.#named.get(undefined) ?? false;
    this.#uploads = new Uploads(this.#files, plan.isElsewhere ? '/tmp' : tmpdir());
    this.#addRules();
    void plan.socket.detached.then(() => this.end());
  }

  /** Whether somebody receives the files, with the option `downloads`. */
  get hasListener(): boolean {
    return this.#plan.listener !== undefined;
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
   * @param ownContext The context that stands for the browser's own one. Default: that one.
   */
  async saveAll(ownContext: string | undefined): Promise<void> {
    await this.#save(ownContext);
  }

  /** Whether the browser has begun a download that it has not announced. */
  async isOneComing(): Promise<boolean> {
    // A second WebSocket would cost more.
    const client = this.#files.isOpen ? this.#files : this.#plan.filter.cdp;
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

  /** The page behind the id of a page. */
  pageOf(id: string): DownloadPage {
    return this.#pages.get(id) ?? { ids: [id], contextId: undefined };
  }

  /** Waits until the files on the browser's machine are empty. Rejects if one is not. */
  async leaveNothing(): Promise<void> {
    // Nobody waits for these files any longer, and one may have no end.
    for (const end of this.#arriving.values()) end();
    // The file of a download is emptied after its copy.
    await Promise.all(this.#finished.values());
    // More files can be added meanwhile.
    for (const emptied of this.#emptied) await emptied;
    await this.#uploads.leaveNothing();
    await this.#files.closePage();
  }

  /** Ends its own client, and what is still running fails. Call it before others use the browser: their downloads are not the lease's. */
  end(): void {
    this.#files.close();
    for (const download of this.#downloads.values())
      this.#fail(download, new Error('the connection to the browser was closed'));
  }

  /** Of the messages of further clients: what they download arrives where they say. */
  readonly rulesOfOthers: MessageRules = {
    commands: {
      'Browser.setDownloadBehavior': ({ browserContextId }) => void this.#named.set(browserContextId, false),
    },
  };

  #addRules(): void {
    const { filter, listener } = this.#plan;
    const copy = ({ files }: { files: string[] }) => this.#uploads.copy(files);
    // The library waits for its new context until downloads are saved there. A context that was closed in the meantime has none.
    const saveIn = async (id: string) => this.#own && this.#save(id).catch(() => {});
    filter.add({
      commands: {
        'DOM.setFileInputFiles': copy,
        'input.setFiles': copy,
        'Browser.setDownloadBehavior': (params) => this.#noteBehavior(params),
        'Browser.cancelDownload': ({ guid = '' }) => this.#cancelArrival(guid),
      },
      results: {
        'Target.createBrowserContext': async ({ browserContextId }) => void (await saveIn(browserContextId)),
        'browser.createUserContext': async ({ userContext }) => void (await saveIn(userContext)),
      },
      events: {
        'Browser.downloadWillBegin': (params) => this.#onBegun(params),
        'Browser.downloadProgress': (params) => this.#onProgress(params),
        'Page.downloadWillBegin': ({ guid }, sessionId) => {
          if (this.#isActive && sessionId !== undefined)
            this.#notePage(guid, this.#pageOfSession.get(sessionId));
        },
        ...(listener && { 'Target.attachedToTarget': (params) => this.#addPage(params) }),
      },
    });
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
    const downloadPath = this.#addFolder(path, true);
    return downloadPath === path ? undefined : { downloadPath };
  }

  /** A folder of temporary files may have a name here that another machine does not have. */
  #addFolder(here: string, mustStay: boolean): string {
    const known = this.#folders.find((folder) => folder.here === here);
    if (known) return known.there;
    const there = this.#plan.isElsewhere && !here.startsWith('/tmp/') ? `/tmp/${basename(here)}` : here;
    this.#folders.push({ there, here, mustStay });
    return there;
  }

  async #save(browserContextId: string | undefined): Promise<void> {
    this.#contexts.add(browserContextId);
    const downloadPath = this.#addFolder(this.#own!, false);
    const behavior = { behavior: 'allowAndName', downloadPath, eventsEnabled: true };
    this.#named.set(browserContextId, true);
    await this.#files.send('Browser.setDownloadBehavior', { ...behavior, browserContextId });
  }

  #addPage({ sessionId, targetInfo }: EventParams<'Target.attachedToTarget'>): void {
    const { targetId, browserContextId, openerId } = targetInfo;
    const openers = openerId === undefined ? [] : (this.#pages.get(openerId)?.ids ?? [openerId]);
    const page = { ids: [targetId, ...openers], contextId: browserContextId };
    this.#pageOfSession.set(sessionId, page);
    this.#pages.set(targetId, page);
  }

  #onBegun({ guid, url, suggestedFilename, frameId = '' }: EventParams<'Browser.downloadWillBegin'>): void {
    if (!this.#isActive || this.#downloads.has(guid) || this.#finished.has(guid)) return;
    // The browser names only the frame.
    const page = this.#pageOfDownload.get(guid) ?? this.#pages.get(frameId);
    const download = { guid, url, suggestedFilename, page, received: 0, total: 0 };
    this.#downloads.set(guid, download);
    this.#plan.listener?.begun(download);
  }

  /** The event of the page may come before that of the browser, or after it. */
  #notePage(guid: string, page: DownloadPage | undefined): void {
    if (!page) return;
    this.#pageOfDownload.set(guid, page);
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
      if (late) this.#emptied.push(late);
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
      if (listener && Math.max(download.received, download.total) > this.#maxSize) this.#refuse(download);
    }
    return undefined;
  }

  get #maxSize(): number {
    return this.#plan.listener?.maxSize ?? LARGEST_DOWNLOAD;
  }

  #refuse(download: BrowserDownload): void {
    if (this.#fail(download, this.#tooLarge(Math.max(download.received, download.total))))
      void this.cancel(download);
  }

  #tooLarge(size: number): Error {
    return new Error(
      `it has ${size} bytes, and the largest allowed file ${this.#maxSize} (option downloads.maxSize)`,
    );
  }

  /** Another socket may have reported the end before, or the browser completed a download that it was told to cancel. */
  #finishLate(guid: string, filePath: string | undefined): Promise<boolean> | undefined {
    return this.#finished.get(guid)?.then(async (isHere) => {
      const folders = this.#foldersOf(guid, filePath);
      // A file of this machine is removed with its folder.
      if (!isHere && folders && !(await isFile(join(folders.here, guid))))
        this.#empty(filePath ?? `${folders.there}/${guid}`);
      return isHere;
    });
  }

  /** An old browser sends no path. All folders of a connection are the same then. */
  #foldersOf(guid: string, filePath: string | undefined): Folders | undefined {
    return this.#folders.find(({ there }) => filePath === undefined || isIn(filePath, there, guid));
  }

  /** Returns false if the download has ended before. */
  #fail(download: BrowserDownload, error: Error): boolean {
    if (this.#finished.has(download.guid)) return false;
    this.#standIns.take(download.url, download.total)?.destroy();
    this.#finished.set(download.guid, Promise.resolve(false));
    this.#downloads.delete(download.guid);
    this.#plan.listener?.failed(download, error);
    return true;
  }

  /** Resolves to whether the file is on this machine. Never rejects. */
  async #finish(download: BrowserDownload, filePath: string | undefined): Promise<boolean> {
    const { listener } = this.#plan;
    let isHere = false;
    try {
      const file = await this.#fetch(download, filePath);
      isHere = true;
      if (file) await listener?.arrived(download, file.path, file.mustStay);
    } catch (error) {
      listener?.failed(download, error as Error);
    }
    this.#downloads.delete(download.guid);
    this.#pageOfDownload.delete(download.guid);
    return isHere;
  }

  /** Resolves to the path of the file on this machine; to undefined if nobody needs it here. */
  async #fetch(
    download: BrowserDownload,
    filePath: string | undefined,
  ): Promise<{ path: string; mustStay: boolean } | undefined> {
    const { guid, url, received } = download;
    const content = this.#standIns.take(url, received);
    const folders = this.#foldersOf(guid, filePath);
    const from = filePath ?? `${folders?.there}/${guid}`;
    const here = await this.#folderFor(folders);
    if (here === undefined && content) throw new Error('there is no folder for it on this machine');
    if (here === undefined) return undefined;
    // A path of the browser means nothing here: the folder is ours or the library's, and the name is a UUID.
    const path = join(here, guid);
    const mustStay = here === folders?.here && folders.mustStay;
    if (content) {
      await this.#receive(download, content, path);
      return { path, mustStay };
    }
    const found = await stat(path).catch(() => undefined);
    if (found?.isFile()) return { path: this.#accept(found.size, path), mustStay };
    try {
      await this.#files.copy(from, path, {
        check: (size) => this.#checkCopy(size, download),
        onPart: (copied) => this.#plan.listener?.progressed(download, copied),
      });
    } finally {
      if (folders) this.#empty(from);
    }
    return { path, mustStay };
  }

  #cancelArrival(guid: string): undefined {
    if (this.#downloads.has(guid)) this.#canceled.add(guid);
    this.#arriving.get(guid)?.();
  }

  /** Lets the content of a file take the place of its stand-in. */
  async #receive(download: BrowserDownload, content: Readable, path: string): Promise<void> {
    const { guid } = download;
    const canceled = new AbortController();
    const cancel = () => canceled.abort(new Error('it was canceled'));
    this.#arriving.set(guid, cancel);
    if (this.#canceled.delete(guid)) cancel();
    const onPart = (size: number) => {
      if (size > this.#maxSize) throw this.#tooLarge(size);
      this.#plan.listener?.progressed(download, size);
    };
    try {
      await writeContent(content, path, { onPart, signal: canceled.signal });
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    } finally {
      content.destroy();
      this.#arriving.delete(guid);
    }
  }

  /**
   * The folder in which a file of the browser arrives. The caller's folder may exist only on the browser's machine: then the file
   * stays there without a listener, and a folder of this machine receives a copy for the listener.
   */
  async #folderFor(folders: Folders | undefined): Promise<string | undefined> {
    if (folders && (await isFolder(folders.here))) return folders.here;
    if (!this.#plan.listener) return undefined;
    for (const { here } of this.#folders) if (await isFolder(here)) return here;
    throw new Error('there is no folder for it on this machine');
  }

  /** Without a listener, only the copy is limited: the file of a browser on this machine is the library's own. */
  #accept(size: number, path: string): string {
    if (this.#plan.listener && size > this.#maxSize) throw this.#tooLarge(size);
    return path;
  }

  #checkCopy(size: number, { received }: BrowserDownload): void {
    if (size > this.#maxSize) throw this.#tooLarge(size);
    if (size !== received) throw new Error(`the browser shows ${size} of its ${received} bytes`);
  }

  /** The library reads the copy. */
  #empty(path: string): void {
    const emptied = this.#files.empty(path);
    emptied.catch(() => {});
    this.#emptied.push(emptied);
  }
}

function isIn(path: string, folder: string, guid: string): boolean {
  return path === `${folder}/${guid}` || path === `${folder}\\${guid}`;
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() ?? false;
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}
