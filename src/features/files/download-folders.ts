import { stat } from 'node:fs/promises';
import { basename } from 'node:path';

/** Where the browser saves its downloads, and the folder of this machine that stands for it. */
export interface Folders {
  readonly there: string;
  readonly here: string;
  /** Whether an automation library expects the files here. */
  readonly mustStay: boolean;
}

/** The folders in which the downloads of a connection are saved. */
export class DownloadFolders {
  readonly #folders: Folders[] = [];
  readonly #isElsewhere: boolean;

  /** @param isElsewhere False if the browser may run on this machine. */
  constructor(isElsewhere: boolean) {
    this.#isElsewhere = isElsewhere;
  }

  /** Returns the path for the browser: a folder of temporary files may have a name here that another machine does not have. */
  add(here: string, mustStay: boolean): string {
    const known = this.#folders.find((folder) => folder.here === here);
    if (known) return known.there;
    const there = this.#isElsewhere && !here.startsWith('/tmp/') ? `/tmp/${basename(here)}` : here;
    this.#folders.push({ there, here, mustStay });
    return there;
  }

  /** Where the browser saved a download. An old browser sends no path: all folders of a connection are the same then. */
  of(guid: string, filePath: string | undefined): Folders | undefined {
    return this.#folders.find(({ there }) => filePath === undefined || isIn(filePath, there, guid));
  }

  /** Resolves to the first folder that exists on this machine. */
  async firstHere(): Promise<string | undefined> {
    for (const { here } of this.#folders) if (await isFolder(here)) return here;
    return undefined;
  }
}

export async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}

function isIn(path: string, folder: string, guid: string): boolean {
  return path === `${folder}/${guid}` || path === `${folder}\\${guid}`;
}
