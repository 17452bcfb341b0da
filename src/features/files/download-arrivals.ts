import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { BrowserFiles } from './browser-files.js';
import { LARGEST_DOWNLOAD } from './options.js';
import type { BrowserDownload, DownloadListener } from './download.js';
import { isFolder, type DownloadFolders, type Folders } from './download-folders.js';
import { writeContent, type PlaceholderFiles } from '../placeholder-files.js';
import { createAbort } from '../../shared/globals.js';

/** A file on this machine. */
interface ArrivedFile {
  readonly path: string;
  /** Somebody else also uses the file. */
  readonly mustStay: boolean;
}

interface PlanOfArrivals {
  readonly files: BrowserFiles;
  readonly folders: DownloadFolders;
  readonly placeholders: PlaceholderFiles;
  readonly listener: DownloadListener | undefined;
}

/** Brings the files that the browser has downloaded to this machine, and leaves nothing of them on its own. */
export class DownloadArrivals {
  readonly #plan: PlanOfArrivals;
  readonly #emptied: Promise<unknown>[] = [];
  /** Ends the arrival of a file that had a placeholder, by the id of the download. */
  readonly #arriving = new Map<string, () => void>();
  readonly #canceled = new Set<string>();

  constructor(plan: PlanOfArrivals) {
    this.#plan = plan;
  }

  /** Throws if a download is too large. Without a listener, this limits what is copied. */
  check(size: number): void {
    const maxSize = this.#plan.listener?.maxSize ?? LARGEST_DOWNLOAD;
    if (size > maxSize)
      throw new Error(
        `it has ${size} bytes, and the largest allowed file ${maxSize} (option downloads.maxSize)`,
      );
  }

  /** Resolves to undefined if nobody needs the file here. */
  async bring(download: BrowserDownload, filePath: string | undefined): Promise<ArrivedFile | undefined> {
    const { guid, url, received } = download;
    const { folders, placeholders, listener, files } = this.#plan;
    const content = placeholders.take(url, received);
    const saved = folders.of(guid, filePath);
    const from = filePath ?? `${saved?.there}/${guid}`;
    const here = await this.#folderFor(saved);
    if (here === undefined && content) throw noFolder();
    if (here === undefined) return undefined;
    // A path of the browser means nothing here: the folder is ours or the library's, and the name is a UUID.
    const path = join(here, guid);
    const mustStay = here === saved?.here && saved.mustStay;
    if (content) {
      await this.#receive(download, content, path);
      return { path, mustStay };
    }
    const found = await stat(path).catch(() => undefined);
    if (found?.isFile()) {
      // Without a listener, the file of a browser on this machine is the library's own.
      if (listener) this.check(found.size);
      return { path, mustStay };
    }
    const check = (size: number) => {
      this.check(size);
      if (size !== received) throw new Error(`the browser shows ${size} of its ${received} bytes`);
    };
    try {
      await files.copy(from, path, { check, onPart: (copied) => listener?.progressed(download, copied) });
    } finally {
      if (saved) this.#empty(from);
    }
    return { path, mustStay };
  }

  /** Ends the arrival of a file, also one that has not begun. */
  cancel(guid: string): void {
    this.#canceled.add(guid);
    this.#arriving.get(guid)?.();
  }

  /** No file arrives: its download has failed. */
  drop({ url, total }: BrowserDownload): void {
    this.#plan.placeholders.take(url, total)?.destroy();
  }

  /** Removes what the browser has of a file that nobody waits for any longer. A file of this machine is removed with its folder. */
  async remove(guid: string, filePath: string | undefined): Promise<void> {
    const saved = this.#plan.folders.of(guid, filePath);
    if (saved && !(await isFile(join(saved.here, guid)))) this.#empty(filePath ?? `${saved.there}/${guid}`);
  }

  /** Nobody waits for these files any longer, and one may have no end. */
  endAll(): void {
    for (const end of this.#arriving.values()) end();
  }

  /** Waits until the copied files are empty on the browser's machine. Rejects if one is not. */
  async emptyFiles(): Promise<void> {
    // More files can be added meanwhile.
    for (const emptied of this.#emptied) await emptied;
  }

  /** Lets the content of a file take the place of its placeholder. */
  async #receive(download: BrowserDownload, content: Readable, path: string): Promise<void> {
    const { guid } = download;
    const canceled = createAbort();
    const cancel = () => canceled.abort(new Error('it was canceled'));
    this.#arriving.set(guid, cancel);
    if (this.#canceled.delete(guid)) cancel();
    const onPart = (size: number) => {
      this.check(size);
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
  async #folderFor(saved: Folders | undefined): Promise<string | undefined> {
    if (saved && (await isFolder(saved.here))) return saved.here;
    if (!this.#plan.listener) return undefined;
    const here = await this.#plan.folders.firstHere();
    if (here === undefined) throw noFolder();
    return here;
  }

  /** The library reads the copy. */
  #empty(path: string): void {
    const emptied = this.#plan.files.empty(path);
    emptied.catch(() => {});
    this.#emptied.push(emptied);
  }
}

function noFolder(): Error {
  return new Error('there is no folder for it on this machine');
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() ?? false;
}
