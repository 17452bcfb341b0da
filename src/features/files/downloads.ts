import { placeFile, prepareFolder } from '../files.js';
import type { BrowserDownload, DownloadListener, DownloadPage } from './download.js';
import type { ConnectExtension, Opening } from '../../drivers/extension.js';
import { createTemporaryFolder } from '../../shared/connection-folder.js';
import type { PlaceholderFiles } from '../placeholder-files.js';
import { DownloadWatch } from './download-watch.js';
import { inTime } from '../../lease/in-time.js';
import type { StepOf } from '../../shared/telemetry.js';
import type {
  FeatureContext,
  FeatureNeeds,
  LeaseEnding,
  LeaseFeature,
  Work,
  WorkEnd,
} from '../../lease/feature.js';
import { raceAbort, raceTimeout } from '../../shared/abort.js';
import { delay } from '../../shared/clock.js';
import { duration } from '../../shared/errors.js';
import { DownloadError } from '../../shared/lease-errors.js';
import { excerpt } from '../../shared/redact.js';
import type { DownloadedFile, DownloadsResult, DownloadsSettings, DownloadsSteps } from './options.js';

/** Bytes between two events of progress. */
const PROGRESS_STEP = 4 * 1024 * 1024;
/** How often, and how many ms apart, the browser is asked for downloads that it has not announced. */
const FEWEST_CHECKS = 8;
const MOST_CHECKS = 20;
const CHECK_INTERVAL = 25;
/** The beginning of a `data:` URL, in characters: the rest is the content of the file. */
const LONGEST_DATA_URL = 100;
/** Time to remove the files on the browser's machine, in ms. */
const REMOVAL_TIMEOUT = 5000;
/** Time in ms for what has no timeout of its own. */
const SLACK = 15_000;

interface SettleRequest {
  readonly owns?: ((page: DownloadPage | undefined) => boolean) | undefined;
  readonly isCut?: boolean | undefined;
  readonly leaves?: boolean;
}

/** A download that has not ended. */
interface Running {
  /** The bytes of the present stage, at the last event of progress. */
  reported: { stage: 'receive' | 'copy'; bytes: number };
  /** Resolves when the download has ended. */
  readonly ended: Promise<void>;
  readonly end: () => void;
}

type Context = FeatureContext<StepOf<DownloadsSteps>>;

/** The downloads of a lease: with the option `downloads`, their files arrive on this machine. */
export class Downloads implements LeaseFeature {
  readonly needs: FeatureNeeds;
  readonly prepare?: () => Promise<void>;
  /** The files that have arrived so far. */
  readonly files: DownloadedFile[] = [];
  readonly summary: DownloadsResult = { downloads: this.files };
  readonly #options: DownloadsSettings | undefined;
  readonly #placeholders: PlaceholderFiles;
  /** The watch of the present connection. */
  #watch: DownloadWatch | undefined;
  /** The files that arrive. It exists from the lease of the browser on, with the option. */
  #arriving: ArrivingFiles | undefined;

  constructor(options: DownloadsSettings | undefined, placeholders: PlaceholderFiles) {
    this.#options = options;
    this.#placeholders = placeholders;
    this.needs = { time: (options?.timeout ?? 0) + SLACK, ...(options && { cdp: 'downloads' }) };
    if (options) this.prepare = () => prepareFolder(options.folder, 'downloads');
  }

  leased(lease: Context): void {
    if (this.#options) this.#arriving = new ArrivingFiles(lease, this.#options, this.files);
  }

  /** Also without the option: a library that saves downloads, or uploads files, does so on the machine of the browser. */
  async connect(_lease: Context, opening: Opening): Promise<ConnectExtension | undefined> {
    this.#watch = undefined;
    const { library, own, shared } = opening;
    if (!library.sharesFiles) return undefined;
    const [listener, placeholders] = [this.#arriving, this.#placeholders];
    const watch = new DownloadWatch({ ...opening, listener, placeholders });
    this.#watch = watch;
    const stop = async () => watch.close();
    if (!listener || library.savesDownloads) return { stop };
    watch.prepare((await createTemporaryFolder(own)).path);
    return { useBrowser: () => watch.saveAll(shared.sessions.ownContext), stop };
  }

  /** Where several tasks run in a browser at the same time, each download is the task's of its page. */
  async begin({ kind, lease, connection, handles, scope, isAmongOthers }: Work) {
    const arriving = this.#arriving;
    if (!arriving || !connection || !handles || kind !== 'task') return undefined;
    const pageId = isAmongOthers
      ? await raceAbort(connection.pageId?.(handles) ?? Promise.resolve(undefined), lease.signal)
      : undefined;
    const owns = (page: DownloadPage | undefined) => {
      if (!page || pageId === undefined) return false;
      if (scope === 'page') return page.ids.includes(pageId);
      return page.contextId === this.#watch?.pageOf(pageId).contextId;
    };
    return async (end: WorkEnd | undefined): Promise<DownloadsResult> => {
      const how = { isCut: end?.isCut ?? !end, owns: isAmongOthers ? owns : undefined };
      return { downloads: await arriving.settle(this.#watch, how) };
    };
  }

  /** Waits for the running downloads, and removes what is left of all on the browser's machine. */
  async stop({ lease, connection, leaves }: LeaseEnding): Promise<void> {
    if (!connection) return;
    const watch = this.#watch;
    await this.#arriving?.settle(watch, { leaves });
    if (lease.signal.aborted || !watch) return;
    try {
      await inTime(connection, REMOVAL_TIMEOUT, () => watch.emptyFiles());
    } catch (cause) {
      lease.preventReuse("Not all downloaded files could be removed from the browser's machine.", cause);
    }
  }
}

/**
 * The files that the browser of a lease downloads. Their files arrive in its folder, also while the callback runs. A failure
 * is in `cleanupErrors`, and never fails the run.
 */
class ArrivingFiles implements DownloadListener {
  readonly #files: DownloadedFile[];
  readonly maxSize: number;
  readonly #lease: Context;
  readonly #options: DownloadsSettings;
  readonly #running = new Map<BrowserDownload, Running>();
  /** The files that no task has received yet. */
  #unclaimed: { readonly file: DownloadedFile; readonly download: BrowserDownload }[] = [];

  constructor(lease: Context, options: DownloadsSettings, files: DownloadedFile[]) {
    this.#lease = lease;
    this.#files = files;
    this.#options = options;
    this.maxSize = options.maxSize;
  }

  begun(download: BrowserDownload): void {
    let end = () => {};
    const ended = new Promise<void>((resolve) => (end = resolve));
    this.#running.set(download, { reported: { stage: 'receive', bytes: 0 }, ended, end });
    this.#lease.emit({ type: 'download-started', ...this.#factsOf(download) });
  }

  progressed(download: BrowserDownload, copied?: number): void {
    const running = this.#running.get(download);
    if (!running) return;
    const stage = copied === undefined ? 'receive' : 'copy';
    const bytes = copied ?? download.received;
    const since = stage === running.reported.stage ? running.reported.bytes : 0;
    if (bytes - since < PROGRESS_STEP) return;
    running.reported = { stage, bytes };
    const total = download.total;
    this.#lease.emit({ type: 'download-progress', ...this.#factsOf(download), stage, bytes, total });
  }

  async arrived(download: BrowserDownload, from: string, mustStay: boolean): Promise<void> {
    const { suggestedFilename } = download;
    const placed = await placeFile(from, this.#options.folder, { name: suggestedFilename, mustStay });
    const { sessionId, url } = this.#factsOf(download);
    const file: DownloadedFile = { ...placed, url, suggestedFilename };
    this.#files.push(file);
    this.#unclaimed.push({ file, download });
    this.#lease.emit({ type: 'downloaded', sessionId, download: file });
    this.#end(download);
  }

  failed(download: BrowserDownload, cause: Error): void {
    if (!this.#running.has(download)) return;
    const { sessionId, url, suggestedFilename } = this.#factsOf(download);
    const message = `The download "${excerpt(suggestedFilename, 100)}" did not arrive: ${excerpt(cause.message, 500)}.`;
    const error = new DownloadError(message, suggestedFilename, { sessionId, cause });
    this.#lease.addError(error);
    this.#lease.emit({ type: 'download-failed', sessionId, url, error });
    this.#end(download);
  }

  /**
   * Waits for the running downloads of a task or of the whole lease, and cuts those that take too long. Resolves with the files of
   * the task. Never rejects.
   *
   * @param owns Whether the downloads of a page belong to the task; undefined is an unknown page.
   * @param isCut Do not wait.
   * @param leaves Cut downloads continue in the browser.
   */
  async settle(
    downloads: DownloadWatch | undefined,
    { owns = () => true, isCut = false, leaves = false }: SettleRequest = {},
  ): Promise<readonly DownloadedFile[]> {
    const { signal } = this.#lease;
    const { timeout } = this.#options;
    const isAborted = () => isCut || signal.aborted;
    let isLate = false;
    const wait = async () => {
      // The page of a download can still become known, and a download can cause another one.
      const running = () => [...this.#running].filter(([{ page }]) => !page || owns(page));
      const isAnyKnown = () =>
        running().length > 0 || this.#unclaimed.some(({ download: { page } }) => owns(page));
      // A response that becomes a download arrives before the browser counts and announces the download.
      for (let check = 1; downloads && check <= MOST_CHECKS && !isLate; check++) {
        const isComing = await downloads.isOneComing();
        if (!isComing && (isAnyKnown() || check >= FEWEST_CHECKS)) break;
        await delay(CHECK_INTERVAL);
      }
      while (!isLate && running().length > 0) await Promise.all(running().map(([, { ended }]) => ended));
    };
    const late = () => new Error(`it took longer than ${duration(timeout)} (option downloads.timeout)`);
    const waiting = async () => raceAbort(raceTimeout(timeout, wait, late), signal);
    const failure = isAborted() ? undefined : await waiting().catch((error: unknown) => error);
    isLate = true;
    const why = isAborted() ? new Error('its lease or task was aborted') : (failure as Error);
    const cut = [...this.#running.keys()].filter(({ page }) => owns(page));
    for (const download of cut) this.failed(download, why);
    if (downloads && !signal.aborted && !leaves) await Promise.all(cut.map((one) => downloads.cancel(one)));
    const claimed = this.#unclaimed.filter(({ download: { page } }) => owns(page));
    this.#unclaimed = this.#unclaimed.filter((one) => !claimed.includes(one));
    return claimed.map(({ file }) => file);
  }

  #end(download: BrowserDownload): void {
    this.#running.get(download)?.end();
    this.#running.delete(download);
  }

  #factsOf({ url, suggestedFilename }: BrowserDownload) {
    const shown = url.startsWith('data:') && url.length > LONGEST_DATA_URL;
    const { sessionId } = this.#lease;
    return { sessionId, url: shown ? `${url.slice(0, LONGEST_DATA_URL)}…` : url, suggestedFilename };
  }
}
