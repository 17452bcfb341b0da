import { createHash } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { lstat, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasEnded, startOf, thisProcess } from './process-id.js';

/** Where process ids have the same meaning; the id of the process that created the folder, and its start. */
const MARK = /([\da-f]{8})\.(\d+)\.(\d*)-([\w.]+)$/;
const MARKED = /^pooled-browser-(artifacts|replays)-/;
/** The path of a profile must be short. */
const PROFILE = /^pooled-browser-\w{6}$/;
/** In a profile: the mark, and the id and the start of its browser. */
const OWNER_FILE = '.pooled-browser-owner';

/** The mark of this process. It is calculated at the first call. Empty where no other process can find out whether this one has ended. */
let mark: string | undefined;

/**
 * Creates a folder that only this user can read. The caller removes it, also when this process ends. After a SIGKILL, the next
 * process of this user that creates a folder removes it.
 */
export function makeTemporaryFolder(kind: 'artifacts' | 'replays'): string {
  return mkdtempSync(join(tmpdir(), `pooled-browser-${kind}-${markOfProcess()}`));
}

/**
 * Creates such a folder for the profile of a browser. It stays while its browser runs, which may outlive this process.
 *
 * @returns `onStarted` must be called with the id of the browser.
 */
export function makeProfileFolder(): { path: string; onStarted: (pid: number) => void } {
  const ofProcess = markOfProcess();
  const path = mkdtempSync(join(tmpdir(), 'pooled-browser-'));
  const onStarted = (pid: number) => {
    const browser = `${pid}.${startOf(pid) ?? ''}`;
    if (ofProcess !== '') writeFileSync(join(path, OWNER_FILE), `${ofProcess}${browser}`);
  };
  return { path, onStarted };
}

function markOfProcess(): string {
  if (mark !== undefined) return mark;
  const system = systemHere();
  const { pid, started = '' } = thisProcess();
  mark = system === undefined ? '' : `${system}.${pid}.${started}-`;
  if (system !== undefined) removeAbandoned(system).catch(() => {});
  return mark;
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
    const isProfile = PROFILE.test(name);
    if (!isProfile && !MARKED.test(name)) continue;
    const path = join(tmpdir(), name);
    const stats = await lstat(path).catch(() => undefined);
    // Another user could replace a folder of theirs while it is removed.
    if (process.getuid !== undefined && stats?.uid !== process.getuid()) continue;
    const text = isProfile ? await readFile(join(path, OWNER_FILE), 'utf8').catch(() => '') : name;
    const [, of, pid, started, rest = ''] = MARK.exec(text) ?? [];
    const isOver = (id?: string, start?: string) =>
      hasEnded({ ...thisProcess(), pid: Number(id), started: start });
    if (of !== system || !isOver(pid, started)) continue;
    const [browser, browserStart] = rest.split('.');
    if (isProfile && !isOver(browser, browserStart)) continue;
    await rm(path, { recursive: true, force: true }).catch(() => {});
  }
}
