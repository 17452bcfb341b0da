import { randomUUID } from 'node:crypto';
import { lstat, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { clock, delay } from './clock.js';
import { jsonOf, isRecord } from './json.js';
import { hasEnded, thisProcess, type ProcessId } from './process-id.js';
import { excerpt } from './redact.js';

/** How often a lock is touched, in ms. */
const BEAT = 1000;
/** A lock that nobody touches for this time, in ms, is stale: its process was killed, perhaps in another container. */
const SILENCE = 10_000;
/** The same for a lock without a holder. A process that lives writes its name at once. */
const SILENCE_OF_NOBODY = 3 * BEAT;
const POLL = 250;

/** Longest name of a host in a message, in characters. */
const LONGEST_HOST = 100;

/** The errors of a lock, in the words of the one who locks the file. */
export interface LockErrors {
  /** The lock can't be written. @param why Message of the cause. */
  readonly cannotLock: (path: string, why: string, cause: unknown) => Error;
  /** @param who The process that holds the lock. Undefined if the lock does not name it. */
  readonly inUse: (path: string, who: string | undefined) => Error;
}

interface Holder extends ProcessId {
  /** Distinguishes this lock from all others. */
  readonly token: string;
}

interface SeenLock {
  /** Undefined if the lock can't be read: it may be another user's. */
  readonly text: string | undefined;
  readonly isFile: boolean;
  /** Changes with each beat of its process. */
  readonly state: string;
}

/**
 * Locks a file against other processes, with a file `<path>.lock` beside it, which this process touches every second. A lock is
 * replaced if its process has certainly ended, or if nobody touches the lock for 10 s. No clocks are compared: the other process may
 * run on another machine.
 */
export class FileLock {
  readonly #path: string;
  readonly #lock: string;
  readonly #text: string;
  readonly #errors: LockErrors;
  readonly #timer: NodeJS.Timeout;
  #lastBeat = clock.now();
  #lost: Error | undefined;

  /** @throws One of the errors, when another process holds the lock, or when the folder can't be written. */
  static async take(path: string, errors: LockErrors): Promise<FileLock> {
    const lock = `${path}.lock`;
    const holder: Holder = { ...thisProcess(), token: randomUUID() };
    const text = JSON.stringify(holder);
    const file = { path, lock, errors };
    for (;;) {
      if (await create(file, text)) return new FileLock(file, text);
      const stale = await findStale(file);
      if (stale) await remove(file, stale);
    }
  }

  private constructor({ path, lock, errors }: LockedFile, text: string) {
    this.#path = path;
    this.#lock = lock;
    this.#errors = errors;
    this.#text = text;
    this.#timer = clock.setInterval(() => void this.#beat(), BEAT).unref();
  }

  /**
   * Rejects if another process has the lock: this process did not respond for so long that its lock seemed stale.
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
      const file = { path: this.#path, lock: this.#lock, errors: this.#errors };
      if (!seen) await create(file, this.#text);
      else if (seen.text === this.#text) await utimes(this.#lock, new Date(), new Date());
      else this.#lost = inUse(file, holderIn(seen));
      this.#lastBeat = clock.now();
    } catch {
      // The next beat tries again.
    }
  }
}

/** A file, its lock, and what is thrown about them. */
interface LockedFile {
  readonly path: string;
  readonly lock: string;
  readonly errors: LockErrors;
}

/** Resolves to false if there is a lock already. */
async function create(file: LockedFile, text: string): Promise<boolean> {
  try {
    await writeFile(file.lock, text, { flag: 'wx', mode: 0o600 });
    return true;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw cannotLock(file, cause);
  }
}

/** Resolves with a lock that may be replaced, or with `undefined` if the lock does not exist any longer. Rejects if another process lives. */
async function findStale(file: LockedFile): Promise<SeenLock | undefined> {
  const { lock } = file;
  const first = await see(lock);
  if (!first) return undefined;
  const holder = holderIn(first);
  const isGone = holder && hasEnded(holder);
  if (isGone) return first;
  if (isGone === false || !first.isFile) throw inUse(file, holder);
  const isNobody = first.text !== undefined && !holder;
  const end = clock.now() + (isNobody ? SILENCE_OF_NOBODY : SILENCE);
  while (clock.now() < end) {
    await delay(POLL);
    const seen = await see(lock);
    if (seen?.state === first.state) continue;
    if (!seen) return undefined;
    throw inUse(file, holderIn(seen));
  }
  return first;
}

/** Removes a stale lock. Of two processes that find it, one removes it; a new lock of the other one is put back. */
async function remove(file: LockedFile, stale: SeenLock): Promise<void> {
  const { lock } = file;
  const aside = `${lock}.${randomUUID()}`;
  try {
    await rename(lock, aside);
    if ((await see(aside))?.state === stale.state) await rm(aside);
    else await rename(aside, lock);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cannotLock(file, cause);
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

function cannotLock({ path, errors }: LockedFile, cause: unknown): Error {
  return errors.cannotLock(path, (cause as Error).message, cause);
}

function inUse({ path, errors }: LockedFile, holder: Holder | undefined): Error {
  const who = holder && `process ${holder.pid} on ${excerpt(holder.host, LONGEST_HOST)}`;
  return errors.inUse(path, who);
}
