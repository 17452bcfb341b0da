import { randomUUID } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { recordOf } from '../shared/json.js';
import { CheckpointError } from '../shared/lease-errors.js';

/** The process that holds a lock. The start time distinguishes processes with the same id. */
interface Holder {
  readonly pid: number;
  readonly host: string;
  readonly started: number;
}

/**
 * Locks a checkpoint against other jobs, with a file `<path>.lock` beside it. The lock of a process that no longer runs
 * is replaced.
 *
 * @returns A function that removes the lock.
 * @throws CheckpointError when another job holds the lock.
 */
export async function lockCheckpoint(path: string): Promise<() => Promise<void>> {
  const lock = `${path}.lock`;
  for (;;) {
    if (await createLock(lock, path)) return () => rm(lock, { force: true });
    const text = await readLock(lock);
    // The other job has just ended.
    if (text === undefined) continue;
    const holder = recordOf(text) as Partial<Holder>;
    if (!isOver(holder)) throw inUse(path, holder);
    await removeLock(lock, text);
  }
}

/** Resolves to false if there is a lock already. */
async function createLock(lock: string, path: string): Promise<boolean> {
  const holder: Holder = { pid: process.pid, host: hostname(), started: performance.timeOrigin };
  try {
    await writeFile(lock, JSON.stringify(holder), { flag: 'wx', mode: 0o600 });
    return true;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw new CheckpointError(`The checkpoint ${path} cannot be opened: ${(cause as Error).message}.`, {
      cause,
    });
  }
}

/**
 * Resolves to `undefined` if there is no lock any more. The lock of another user may not be readable: then the holder
 * is unknown.
 */
async function readLock(lock: string): Promise<string | undefined> {
  return readFile(lock, 'utf8').catch((error: NodeJS.ErrnoException) =>
    error.code === 'ENOENT' ? undefined : '',
  );
}

/** Removes a stale lock. Of two jobs that find it, one removes it; a new lock of the other one is put back. */
async function removeLock(lock: string, stale: string): Promise<void> {
  const aside = `${lock}.${randomUUID()}`;
  try {
    await rename(lock, aside);
  } catch {
    return;
  }
  if ((await readFile(aside, 'utf8')) === stale) await rm(aside);
  else await rename(aside, lock);
}

/** Processes of other machines can't be checked, so their locks stay. */
function isOver({ pid, host, started }: Partial<Holder>): boolean {
  if (pid === undefined || host !== hostname()) return false;
  if (pid === process.pid) return started !== performance.timeOrigin;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

function inUse(path: string, { pid, host }: Partial<Holder>): CheckpointError {
  const who = pid === undefined ? 'another job' : `process ${pid} on ${host}`;
  return new CheckpointError(
    `The checkpoint ${path} is in use by ${who}. Two jobs in one file would lose outcomes: wait for the other one, or ` +
      `use another file. If that process no longer runs, delete ${path}.lock.`,
  );
}
