import { randomUUID } from 'node:crypto';
import { lstat, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { clock, delay } from '../shared/clock.js';
import { jsonOf, isRecord } from '../shared/json.js';
import { CheckpointError } from '../shared/lease-errors.js';
import { hasEnded, thisProcess, type ProcessId } from '../shared/process-id.js';
import { excerpt } from '../shared/redact.js';

/** How often a job touches its lock, in ms. */
const BEAT = 1000;
/** A lock that nobody touches for this time, in ms, is stale: its process was killed, perhaps in another container. */
const SILENCE = 10_000;
/** The same for a lock without a holder. A job that lives writes its name at once. */
const SILENCE_OF_NOBODY = 3 * BEAT;
const POLL = 250;

/** Longest name of a host in a message, in characters. */
const LONGEST_HOST = 100;

/** The process that holds a lock. */
interface Holder extends ProcessId {
  /** Distinguishes this lock from all others. */
  readonly token: string;
}

interface SeenLock {
  /** Undefined if the lock can't be read: it may be another user's. */
  readonly text: string | undefined;
  readonly isFile: boolean;
  /** Changes with each beat of its job. */
  readonly state: string;
}

/**
 * Locks a checkpoint against other jobs, with a file `<path>.lock` beside it, which the job touches every second. A lock is
 * replaced if its process is known to be gone, or if nobody touches the lock for 10 s. No clocks are compared: the other job may
 * run on another machine.
 */
export class FileLock {
  readonly #path: string;
  readonly #lock: string;
  readonly #text: string;
  readonly #timer: NodeJS.Timeout;
  #lastBeat = clock.now();
  #lost: CheckpointError | undefined;

  /** @throws `CheckpointError` when another job holds the lock, or when the folder can't be written. */
  static async take(path: string): Promise<FileLock> {
    const lock = `${path}.lock`;
    const holder: Holder = { ...thisProcess(), token: randomUUID() };
    const text = JSON.stringify(holder);
    for (;;) {
      if (await create(lock, text, path)) return new FileLock(path, lock, text);
      const stale = await findStale(lock, path);
      if (stale) await remove(lock, stale, path);
    }
  }

  private constructor(path: string, lock: string, text: string) {
    this.#path = path;
    this.#lock = lock;
    this.#text = text;
    this.#timer = clock.setInterval(() => void this.#beat(), BEAT).unref();
  }

  /**
   * Rejects if another job has the lock: this process did not respond for so long that its lock seemed stale.
   *
   * @param age Milliseconds since the last beat from which the lock is read again.
   */
  async check(age = SILENCE / 2): Promise<void> {
    if (clock.now() - this.#lastBeat >= age) await this.#beat();
    if (this.#lost) throw this.#lost;
  }

  async release(): Promise<void> {
    clock.clearInterval(this.#timer);
    if ((await see(this.#lock))?.text === this.#text) await rm(this.#lock, { force: true });
  }

  async #beat(): Promise<void> {
    try {
      const seen = await see(this.#lock);
      // Somebody has deleted the lock.
      if (!seen) await create(this.#lock, this.#text, this.#path);
      else if (seen.text === this.#text) await utimes(this.#lock, new Date(), new Date());
      else this.#lost = inUse(this.#path, holderIn(seen));
      this.#lastBeat = clock.now();
    } catch {
      // The next beat tries again.
    }
  }
}

/** Resolves to false if there is a lock already. */
async function create(lock: string, text: string, path: string): Promise<boolean> {
  try {
    await writeFile(lock, text, { flag: 'wx', mode: 0o600 });
    return true;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw cannotLock(path, cause);
  }
}

/** Resolves with a lock that may be replaced, or with `undefined` if the lock is gone. Rejects if another job lives. */
async function findStale(lock: string, path: string): Promise<SeenLock | undefined> {
  const first = await see(lock);
  if (!first) return undefined;
  const holder = holderIn(first);
  const isGone = holder && hasEnded(holder);
  if (isGone) return first;
  if (isGone === false || !first.isFile) throw inUse(path, holder);
  const isNobody = first.text !== undefined && !holder;
  const end = clock.now() + (isNobody ? SILENCE_OF_NOBODY : SILENCE);
  while (clock.now() < end) {
    await delay(POLL);
    const seen = await see(lock);
    if (seen?.state === first.state) continue;
    if (!seen) return undefined;
    throw inUse(path, holderIn(seen));
  }
  return first;
}

/** Removes a stale lock. Of two jobs that find it, one removes it; a new lock of the other one is put back. */
async function remove(lock: string, stale: SeenLock, path: string): Promise<void> {
  const aside = `${lock}.${randomUUID()}`;
  try {
    await rename(lock, aside);
    if ((await see(aside))?.state === stale.state) await rm(aside);
    else await rename(aside, lock);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cannotLock(path, cause);
  }
}

async function see(lock: string): Promise<SeenLock | undefined> {
  const facts = await lstat(lock).catch(() => undefined);
  if (!facts) return undefined;
  const text = facts.isFile() ? await readFile(lock, 'utf8').catch(() => undefined) : undefined;
  return { text, isFile: facts.isFile(), state: `${facts.ino} ${facts.mtimeMs} ${text}` };
}

function holderIn({ text = '' }: SeenLock): Holder | undefined {
  const holder = jsonOf(text);
  const isHolder =
    isRecord(holder) && typeof holder['pid'] === 'number' && typeof holder['host'] === 'string';
  return isHolder ? (holder as unknown as Holder) : undefined;
}

function cannotLock(path: string, cause: unknown): CheckpointError {
  const { message } = cause as Error;
  return new CheckpointError(
    `The checkpoint ${path} cannot be opened: ${message}. A job locks its file with another one beside it, so that the ` +
      'folder must be writable.',
    { cause },
  );
}

function inUse(path: string, holder: Holder | undefined): CheckpointError {
  const who = holder ? `process ${holder.pid} on ${excerpt(holder.host, LONGEST_HOST)}` : 'another job';
  return new CheckpointError(
    `The checkpoint ${path} is in use by ${who}. Two jobs in one file would lose outcomes: wait for the other one, or ` +
      `use another file. If that process no longer runs, delete ${path}.lock.`,
  );
}
