import { randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { BrowserFiles } from './browser-files.js';

/**
 * Copies the files of an upload to the browser's machine, if the library sends only their paths: Puppeteer always does, Playwright
 * with the connect option `isLocal`. The command waits for the copy, and then has the paths on that machine.
 */
export class Uploads {
  readonly #files: BrowserFiles;
  /** Paths on the browser's machine. */
  readonly #copies: string[] = [];
  readonly #folder: string;
  #nextFolder = 0;
  /** Copies that are under way. */
  readonly #copying: Promise<unknown>[] = [];

  /** @param temporary Folder of temporary files of the browser's machine. */
  constructor(files: BrowserFiles, temporary: string) {
    this.#files = files;
    this.#folder = `${temporary}/pooled-browser-uploads-${randomUUID()}`;
  }

  /** Copies files, and resolves to their paths on the browser's machine. */
  copy(paths: readonly string[]): Promise<{ files: string[] }> {
    const copying = this.#copy(paths);
    this.#copying.push(copying.catch(() => {}));
    return copying;
  }

  /** Removes the content of all copies, also of those that are under way. */
  async emptyFiles(): Promise<void> {
    await Promise.all(this.#copying.splice(0));
    for (const path of this.#copies.splice(0)) await this.#files.empty(path);
  }

  async #copy(paths: readonly string[]): Promise<{ files: string[] }> {
    try {
      const files: string[] = [];
      for (const path of paths) files.push(await this.#pathOf(path));
      return { files };
    } catch (cause) {
      const message = `The file could not be copied to the browser's machine: ${(cause as Error).message}`;
      throw new Error(message, { cause });
    }
  }

  /** Resolves to the path on the browser's machine. */
  async #pathOf(path: string): Promise<string> {
    // As a float, Node's time can be rounded to the next millisecond.
    const found = await stat(path, { bigint: true }).catch(() => undefined);
    // Folders cannot be copied. A file that exists only on the browser's machine is there already.
    if (!found?.isFile()) return path;
    const seen = await this.#files.look(path);
    const size = Number(found.size);
    if (seen.size === size && seen.lastModified === Number(found.mtimeNs / 1_000_000n)) return path;
    // Another page may upload a file of this name at the same time.
    const folder = `${this.#folder}/${this.#nextFolder++}`;
    const copy = await this.#files.save(path, { size, folder, name: basename(path) });
    this.#copies.push(copy);
    return copy;
  }
}
