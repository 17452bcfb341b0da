import { mkdtempSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeProcessEnds } from '../../shared/process-end.js';

/** A folder that is there from its first use until `remove`, or until this process ends. */
export class TemporaryFolder {
  #path: string | undefined;
  #unguard: (() => void) | undefined;

  /** Its path. Nobody but this user can read what is in it. */
  get path(): string {
    if (this.#path !== undefined) return this.#path;
    const path = mkdtempSync(join(tmpdir(), 'pooled-browser-replays-'));
    this.#path = path;
    this.#unguard = beforeProcessEnds({ atExit: () => rmSync(path, { recursive: true, force: true }) });
    return path;
  }

  async remove(): Promise<void> {
    if (this.#path !== undefined) await rm(this.#path, { recursive: true, force: true });
    this.#unguard?.();
  }
}
