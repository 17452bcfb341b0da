import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readdirSync, rmdirSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A small disk of its own, which can be full without harm to anyone. */
export class Disk {
  readonly folder = mkdtempSync(join(tmpdir(), 'd-'));
  readonly #filler = join(this.folder, 'filler');

  constructor(megabytes: number) {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', this.folder], {
      stdio: 'pipe',
    });
  }

  /** Takes all the room that is left. */
  fill(): void {
    const file = openSync(this.#filler, 'a');
    const bytes = Buffer.alloc(64 * 1024);
    try {
      for (;;) writeSync(file, bytes);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    } finally {
      closeSync(file);
    }
  }

  makeRoom(): void {
    rmSync(this.#filler);
  }

  /** What others have written. */
  files(): string[] {
    return readdirSync(this.folder).filter((name) => name !== 'filler');
  }

  unmount(): void {
    // Lazy: a process that is just ending may have a file open there.
    execFileSync('umount', ['--lazy', this.folder]);
    rmdirSync(this.folder);
  }
}

/** Why this machine gives us no disks; nothing where it does. */
export const whyNoDisks = tryDisk();

function tryDisk(): string | undefined {
  if (process.platform !== 'linux') return 'skipped, it needs Linux';
  if (process.getuid?.() !== 0) return 'skipped, only root may mount one';
  try {
    new Disk(1).unmount();
    return undefined;
  } catch (error) {
    return `skipped, none can be mounted (${(error as Error).message.trim()})`;
  }
}
