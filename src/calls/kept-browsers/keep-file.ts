import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, open, rename, rm, type FileHandle } from 'node:fs/promises';
import { resolve } from 'node:path';
import { InvalidOptionError } from '../../shared/errors.js';
import { FileLock, type LockErrors } from '../../shared/file-lock.js';
import { isRecord, jsonOf } from '../../shared/json.js';
import { namingFile } from '../../shared/naming-file.js';
import { pathSegmentFault } from '../../shared/urls.js';

/**
 * A leased browser in a keep file: what finds it again at its service, and no URL and no token. Its dates are ISO 8601, by the clock of
 * this machine.
 */
export interface KeptBrowser {
  /** The name in the path of its clients. */
  readonly name: string;
  readonly sessionId: string;
  /** Id of its lease, which the service shows as a tag. */
  readonly lease: string;
  /** Id or name of its pool. */
  readonly pool: string;
  /** Name of the service. */
  readonly service: string;
  readonly leasedAt: string;
  /** End of its lifetime. */
  readonly endsAt: string;
  /** To which `extend` can move the end. Missing: there is no limit. */
  readonly latestEnd?: string;
}

const FORMAT = 'pooled-browser-kept-1';
/** Most bytes that are read: more than 10,000 browsers. */
const MOST_BYTES = 8 * 1024 * 1024;
const DATE = /^\d{4,6}-\d\d-\d\dT[\d:.]+Z$/;

/**
 * The file of the browsers that outlive their proxy. Only this user can read it, one proxy uses it, and each change replaces it as a
 * whole: a process that is killed at any moment leaves the browsers before or after the change.
 */
export class KeepFile {
  readonly #path: string;
  readonly #lock: FileLock;
  /** By the ids of their leases, in the order in which they were leased. */
  readonly #browsers: Map<string, KeptBrowser>;
  #writing: Promise<void> = Promise.resolve();

  /**
   * @param faultOf Returns why a browser in the file can't be kept.
   * @throws InvalidOptionError if the file can't be used. It stays as it is.
   */
  static async open(given: string, faultOf: (browser: KeptBrowser) => string | undefined): Promise<KeepFile> {
    const path = resolve(given);
    const lock = await FileLock.take(path, LOCK_ERRORS);
    try {
      const browsers = await readBrowsers(path);
      const fault = browsers.map(faultOf).find((one) => one !== undefined);
      if (fault !== undefined) throw refused(path, fault);
      const file = new KeepFile(path, lock, new Map(browsers.map((one) => [one.lease, one])));
      // A folder that can't be written is found before anything is leased.
      await file.#write();
      return file;
    } catch (error) {
      await lock.release();
      if (error instanceof InvalidOptionError) throw error;
      throw refused(path, `can't be used: ${(error as Error).message}.`, error);
    }
  }

  private constructor(path: string, lock: FileLock, browsers: Map<string, KeptBrowser>) {
    this.#path = path;
    this.#lock = lock;
    this.#browsers = browsers;
  }

  get browsers(): readonly KeptBrowser[] {
    return [...this.#browsers.values()];
  }

  has(lease: string): boolean {
    return this.#browsers.has(lease);
  }

  /** Adds a browser, or replaces it. Rejects if the file can't be written: then the browser is not in it. */
  async set(browser: KeptBrowser): Promise<void> {
    this.#browsers.set(browser.lease, browser);
    await this.#write().catch((error: unknown) => {
      this.#browsers.delete(browser.lease);
      throw error;
    });
  }

  /** Never rejects: a browser that stays in the file is not found again, because the service no longer shows its lease. */
  async remove(lease: string): Promise<void> {
    if (this.#browsers.delete(lease)) await this.#write().catch(() => {});
  }

  async close(): Promise<void> {
    await this.#writing.catch(() => {});
    await this.#lock.release();
  }

  /** Writes the browsers of this moment, after the writes before. */
  #write(): Promise<void> {
    const writing = this.#writing
      .catch(() => {})
      .then(async () => {
        await this.#lock.check();
        await replace(this.#path, { format: FORMAT, browsers: this.browsers });
      });
    this.#writing = writing;
    return writing;
  }
}

/** Replaces the file. A symbolic link that somebody put there meanwhile is replaced, and never followed. */
async function replace(path: string, content: object): Promise<void> {
  const temporary = `${path}.${randomUUID()}`;
  try {
    const file = await open(temporary, 'wx', 0o600);
    try {
      await namingFile(temporary, () => file.writeFile(`${JSON.stringify(content, undefined, 2)}\n`));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Reads the file, which need not exist. */
async function readBrowsers(path: string): Promise<readonly KeptBrowser[]> {
  const facts = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (!facts) return [];
  if (!facts.isFile())
    throw refused(path, 'is a symbolic link, or no file. Name a file, or one that does not exist yet.');
  // Never follows a link, and never waits for a pipe, that has replaced the file since. Windows has no such flags: undefined is 0 here.
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    await expectPrivate(path, file);
    return browsersIn(path, await file.readFile('utf8'));
  } finally {
    await file.close();
  }
}

/** @throws InvalidOptionError for a file that other users can have written, or can read. */
async function expectPrivate(path: string, file: FileHandle): Promise<void> {
  const { uid, mode, size } = await file.stat();
  const user = process.getuid?.();
  if (user !== undefined && uid !== user)
    throw refused(path, 'belongs to another user, who could choose your browsers. Name another file.');
  if (user !== undefined && (mode & 0o077) !== 0) {
    const shown = (mode & 0o777).toString(8);
    throw refused(path, `can be used by other users (mode ${shown}). If its content is yours: chmod 600.`);
  }
  if (size > MOST_BYTES) throw refused(path, NO_KEEP_FILE);
}

const NO_KEEP_FILE =
  'has other content than browsers that a proxy kept. It was not changed: name another file, or delete this one. Browsers in it stay ' +
  'leased until the inactivity timeout of their service.';

function browsersIn(path: string, text: string): readonly KeptBrowser[] {
  const json = jsonOf(text);
  const browsers: unknown = isRecord(json) && json['format'] === FORMAT ? json['browsers'] : undefined;
  if (Array.isArray(browsers) && browsers.every(isKeptBrowser)) return browsers;
  throw refused(path, NO_KEEP_FILE);
}

function isKeptBrowser(value: unknown): value is KeptBrowser {
  if (!isRecord(value)) return false;
  const { name, sessionId, lease, pool, service, leasedAt, endsAt, latestEnd } = value;
  const isText = (one: unknown) => typeof one === 'string' && one !== '';
  const isDate = (one: unknown) =>
    typeof one === 'string' && DATE.test(one) && !Number.isNaN(Date.parse(one));
  return (
    [name, lease, pool, service].every(isText) &&
    pathSegmentFault(sessionId) === undefined &&
    [leasedAt, endsAt].every(isDate) &&
    (latestEnd === undefined || isDate(latestEnd))
  );
}

function refused(path: string, fault: string, cause?: unknown): InvalidOptionError {
  return new InvalidOptionError('keepFile', `The keep file ${path} ${fault}`, { cause });
}

const LOCK_ERRORS: LockErrors = {
  cannotLock: (path, why, cause) =>
    refused(
      path,
      `can't be used: ${why}. The proxy locks it with a file beside it, so that the folder must be writable.`,
      cause,
    ),
  inUse: (path, who = 'another proxy') =>
    refused(
      path,
      `is in use by ${who}. Two proxies must not keep the same browsers: stop the other one, or name another file. ` +
        `If that process no longer runs, delete ${path}.lock.`,
    ),
};
