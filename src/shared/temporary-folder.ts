import { createHash } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { lstat, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasEnded, thisProcess } from './process-id.js';

/** With the system and the process that created the folder: its id and its start. */
const NAME = /^pooled-browser-\w+-([\da-f]{8})\.(\d+)\.(\d*)-\w{6}$/;

/** The part of the names of this process. Calculated at the first call. */
let mark: string | undefined;

/**
 * Creates a folder that only this user can read. The caller removes it, also when this process ends. After a SIGKILL, the next
 * process of this user that creates one removes it.
 */
export function makeTemporaryFolder(kind: 'artifacts' | 'replays'): string {
  if (mark === undefined) {
    const system = systemHere();
    const { pid, started = '' } = thisProcess();
    // Without it, no other process can find out whether this one has ended.
    mark = system === undefined ? '' : `${system}.${pid}.${started}-`;
    if (system !== undefined) removeAbandoned(system).catch(() => {});
  }
  return mkdtempSync(join(tmpdir(), `pooled-browser-${kind}-${mark}`));
}

/** Where process ids have the same meaning as here: containers may share a folder. */
function systemHere(): string | undefined {
  const { host, system } = thisProcess();
  if (system === undefined && process.platform === 'linux') return undefined;
  return createHash('sha256').update(`${host} ${system}`).digest('hex').slice(0, 8);
}

/** Removes the folders of processes that have ended. */
async function removeAbandoned(system: string): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const [, of, pid, started] = NAME.exec(name) ?? [];
    if (of !== system || !hasEnded({ ...thisProcess(), pid: Number(pid), started })) continue;
    const path = join(tmpdir(), name);
    const stats = await lstat(path).catch(() => undefined);
    // Another user could replace a folder of theirs while it is removed.
    const isOwn = process.getuid === undefined || stats?.uid === process.getuid();
    if (isOwn) await rm(path, { recursive: true, force: true }).catch(() => {});
  }
}
