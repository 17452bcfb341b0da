import type { ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { sendOnce } from '../net/http.js';
import { explain } from '../net/reachability.js';
import { LinkedAbort } from '../shared/abort.js';
import { environment } from '../shared/environment.js';
import { clock, delay } from '../shared/clock.js';
import { duration, InvalidOptionError } from '../shared/errors.js';
import { isError } from '../shared/globals.js';
import { parseJson } from '../shared/json.js';
import { BrowserNotFoundError, LocalPoolError } from '../shared/lease-errors.js';
import { readOption, wholeNumber } from '../shared/options.js';
import { packageFile } from '../shared/package-file.js';
import { beforeProcessEnds } from '../shared/process-end.js';
import { helperCommand, spawnHelper, unrefStreams, type HelperCommand } from '../shared/runtime.js';
import type { LocalBrowserKind, LocalOptions } from './pool-options.js';

/** The settings that the process of a local service reads from its input. */
export interface LocalServiceSettings {
  readonly pool: string;
  readonly browser?: LocalBrowserKind | undefined;
  /** Default: as many browsers as fit the machine. */
  readonly size?: number | undefined;
  readonly maxLeases?: number | undefined;
  readonly headful?: boolean | undefined;
  readonly liveView?: boolean | undefined;
  readonly args?: readonly string[] | undefined;
  /** Absolute path of the folder of the recordings. */
  readonly recordings: string;
  /** Every lease is limited to some hosts: no page may send UDP packets, to which no such limit applies. */
  readonly isLimited: boolean;
  /** The service ends with this process, and writes its address into the folder. Otherwise it ends with its input. */
  readonly shared?: { readonly owner: number; readonly folder: string };
}

/** The answer of the process: its address, or an error. */
export interface StartAnswer {
  readonly baseUrl?: string;
  readonly token?: string;
  readonly name?: string;
  readonly message?: string;
}

/** A local pool in a separate process. */
export interface LocalService {
  readonly url: URL;
  readonly token: string;
  /** Resolves when the process and its browsers have ended. A shared service ends with its owner. */
  close(): Promise<void>;
}

/** Name of the file with the address in the folder of a shared service. */
export const ADDRESS_FILE = 'address.json';
/** Milliseconds within which the first process must start a shared service. */
const START_TIMEOUT = 60_000;
/** Most processes that one call starts for a shared service: one that ended, and one that can't be reached, is replaced. */
const MOST_STARTS = 3;
const POLL_INTERVAL = 50;
/** Milliseconds within which a service that works answers, also on a busy machine. */
const PROBE_TIMEOUT = 10_000;

/**
 * Starts browsers on this machine behind the API of the pool service. A separate process serves it, because
 * this process may block its event loop, may be killed, and ends when it has nothing else to do.
 *
 * @param owner Id of a process: all processes with the same owner share one service. By default it is not shared.
 * @throws BrowserNotFoundError, LocalPoolError
 */
export async function startLocalService(
  pool: string,
  {
    size = sizeOfEnvironment(),
    headful = environment.isLocalHeadful(),
    recordings,
    owner,
    ...local
  }: LocalOptions,
): Promise<LocalService> {
  const settings = {
    ...local,
    pool,
    size,
    headful,
    recordings: recordingsFolder(recordings),
    isLimited: environment.allowedHosts() !== undefined,
  };
  if (owner !== undefined) return joinSharedService(settings, owner);
  const child = spawnLocal(settings);
  const exited = new Promise<void>((resolve) => {
    child.once('error', () => resolve());
    child.once('exit', () => resolve());
  });
  const { url, token } = readAddress(await firstLine(child, exited));
  // The service must not keep this process alive.
  child.unref();
  unrefStreams(child.stdin, child.stdout);
  // At exit, no request can reach a service that ends with this process.
  const unregister = beforeProcessEnds({ servedOrigin: url.origin });
  const close = async () => {
    unregister();
    child.ref();
    child.stdin!.end();
    await exited;
  };
  return { url, token, close };
}

/**
 * The first process starts the service; the others wait for its address. A process id is used again, for example after the
 * restart of a container: the folder may be left by an earlier owner, whose service has ended.
 */
async function joinSharedService(settings: LocalServiceSettings, owner: number): Promise<LocalService> {
  const kind = settings.browser === 'firefox' ? 'firefox-' : '';
  const folder = join(tmpdir(), `pooled-browser-${kind}${owner}-${encodeURIComponent(settings.pool)}`);
  const end = clock.now() + START_TIMEOUT;
  let stale: string | undefined;
  let count = 0;
  let unreached: unknown;
  while (clock.now() < end) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const text = readOwn(folder);
    if (text === stale) {
      const starts = isFirst(folder, stale);
      if (starts && ++count > MOST_STARTS) throw unreachedService(folder, unreached);
      if (starts) startShared(settings, { owner, folder });
      await delay(POLL_INTERVAL);
      continue;
    }
    const address = readShared(text!, folder);
    try {
      if (await isServing(address, settings.pool)) return { ...address, close: async () => {} };
    } catch (error) {
      unreached = error;
    }
    stale = text;
  }
  // What is left there must not prevent the next attempt.
  rmSync(folder, { recursive: true, force: true });
  throw new LocalPoolError(
    `The local browsers that ${folder} describes did not start within ${duration(START_TIMEOUT)}. Try again.`,
  );
}

/** What is left in the folder must not prevent the next attempt. */
function unreachedService(folder: string, cause: unknown): LocalPoolError {
  rmSync(folder, { recursive: true, force: true });
  const why = isError(cause) ? explain(cause) : 'another program answers at its address';
  return new LocalPoolError(
    `The local browsers were started ${MOST_STARTS} times, but this process could not reach them: ${why}. If a library of your tests ` +
      'replaces the network of this process, allow connections to 127.0.0.1.',
    cause,
  );
}

/** The error of a start is not kept: the cause may be mended. */
function readShared(text: string, folder: string): Pick<LocalService, 'url' | 'token'> {
  try {
    return readAddress(text);
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

/** True in one of all processes that need a service in place of a stale one. */
function isFirst(folder: string, stale = ''): boolean {
  const name = createHash('sha256').update(stale).digest('hex').slice(0, 16);
  try {
    writeFileSync(join(folder, `start-${name}`), '', { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function startShared(
  settings: LocalServiceSettings,
  shared: NonNullable<LocalServiceSettings['shared']>,
): void {
  const child = spawnLocal({ ...settings, shared });
  child.stdin!.end();
  child.stdout!.destroy();
  child.unref();
}

/** Returns false if another program has its port now. Rejects if it can't be reached. */
async function isServing(
  { url, token }: Pick<LocalService, 'url' | 'token'>,
  pool: string,
): Promise<boolean> {
  const path = `${url.href.replace(/\/$/, '')}/browser_pools/${encodeURIComponent(pool)}`;
  const message = { url: new URL(path), headers: { authorization: `Bearer ${token}` } };
  const limit = new LinkedAbort(undefined, PROBE_TIMEOUT);
  try {
    const { status } = await sendOnce(message, { route: {}, signal: limit.signal });
    return status === 200;
  } finally {
    limit.dispose();
  }
}

/** Another user of the machine could have created the folder. */
function readOwn(folder: string): string | undefined {
  const owner = lstatSync(folder, { throwIfNoEntry: false })?.uid;
  if (process.getuid && owner !== undefined && owner !== process.getuid())
    throw new LocalPoolError(`${folder} belongs to another user.`);
  try {
    return readFileSync(join(folder, ADDRESS_FILE), 'utf8');
  } catch {
    return undefined;
  }
}

function sizeOfEnvironment(): number | undefined {
  const size = environment.localSize();
  if (size === undefined) return undefined;
  return readOption(wholeNumber(1), 'BROWSER_POOL_LOCAL_SIZE', Number(size));
}

/** The folder in which the recordings of a local service outlive the process. */
export function recordingsFolder(given = environment.localRecordings()): string {
  return resolve(given ?? 'pooled-browser-recordings');
}

function spawnLocal(settings: LocalServiceSettings): ChildProcess {
  const program = packageFile('dist/local-process.js');
  if (program === undefined) {
    throw new LocalPoolError(
      "baseUrl: 'local' starts a program of the package pooled-browser, which was not found. Install the package beside the " +
        'bundle of the application, or mark it as external.',
    );
  }
  // Ctrl-C in the terminal must not end the browsers before their leases.
  const child = spawnHelper(commandFor(program));
  child.stdin.write(`${JSON.stringify(settings)}\n`);
  return child;
}

function commandFor(program: string): HelperCommand {
  try {
    return helperCommand({ file: program });
  } catch (error) {
    throw new LocalPoolError(`baseUrl: 'local' can't start its process: ${(error as Error).message}.`);
  }
}

async function firstLine(child: ChildProcess, exited: Promise<void>): Promise<string> {
  let output = '';
  const line = new Promise<void>((resolve) => {
    child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.includes('\n')) resolve();
    });
  });
  await Promise.race([line, exited]);
  return output;
}

/** Reads the address of the service, or why it could not start. */
function readAddress(text: string): Pick<LocalService, 'url' | 'token'> {
  if (text === '') throw new LocalPoolError('The process of the local browsers ended before it was ready.');
  const answer = parseJson(text) as StartAnswer;
  const { baseUrl, token, name, message = 'The local browsers did not start.' } = answer;
  if (baseUrl !== undefined && token !== undefined) return { url: new URL(baseUrl), token };
  if (name === 'BrowserNotFoundError') throw new BrowserNotFoundError(message);
  if (name === 'InvalidOptionError') throw new InvalidOptionError('pool', message);
  throw new LocalPoolError(message);
}
