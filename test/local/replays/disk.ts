import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readdirSync, rmdirSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A small mounted disk that a test can fill. */
export class Disk {
  readonly folder = mkdtempSync(join(tmpdir(), 'd-'));
  readonly #filler = join(this.folder, 'filler');

  constructor(megabytes: number) {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', this.folder], {
      stdio: 'pipe',
    });
  }

  /** Uses all free space. */
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

  /** The files without the filler. */
  files(): string[] {
    return readdirSync(this.folder).filter((name) => name !== 'filler');
  }

  unmount(): void {
    // Lazy: a process that ends may still have a file open.
    execFileSync('umount', ['--lazy', this.folder]);
    rmdirSync(this.folder);
  }
}

/** Why a test cannot mount disks on this machine, or undefined. */
export const whyNoDisks = tryDisk();

function tryDisk(): string | undefined {
  if (process.platform !== 'linux') return 'skipped, because this is not Linux';
  if (process.getuid?.() !== 0) return 'skipped, because only root can mount disks';
  try {
    new Disk(1).unmount();
    return undefined;
  } catch (error) {
    return `skipped, because mounting fails (${(error as Error).message.trim()})`;
  }
}
