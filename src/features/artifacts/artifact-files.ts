import { mkdir, mkdtemp, rmdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { namingFile } from '../../shared/naming-file.js';
import { PRIVATE } from '../files.js';

/** The last 50 characters, each of which may take four of the 255 bytes of a file name. They say most about a test. */
const END = /.{0,50}$/u;

/** The folder of one run or attempt. Its name is unique, also among other processes. */
export class ArtifactFolder {
  readonly #path: string;

  static async create(parent: string, name: string): Promise<ArtifactFolder> {
    await mkdir(parent, { recursive: true });
    return new ArtifactFolder(await mkdtemp(join(resolve(parent), `${safeName(name)}-`)));
  }

  private constructor(path: string) {
    this.#path = path;
  }

  /** Writes a file and returns its path. */
  async write(name: string, content: string | Uint8Array): Promise<string> {
    const path = join(this.#path, name);
    await namingFile(path, () => writeFile(path, content, { mode: PRIVATE }));
    return path;
  }

  /** Removes the folder, unless something was written there in the meantime. */
  async remove(): Promise<void> {
    await rmdir(this.#path).catch(() => {});
  }
}

/** Keeps letters and digits of all languages: everything else may have a meaning in a path or at a terminal. */
function safeName(name: string): string {
  const safe = name.replaceAll(/[^\p{L}\p{M}\p{N}]+/gu, '-').replaceAll(/^-|-$/g, '');
  return END.exec(safe)![0] || 'artifacts';
}
