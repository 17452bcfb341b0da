import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { useLocalPool } from '../support/local.js';

/** Command lines of the children of a process. */
function programsOf(pid: number): string[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  return children.map((child) => readFileSync(`/proc/${child}/cmdline`, 'utf8').replaceAll('\0', ' '));
}

const program = fileURLToPath(new URL('programs/leasing.mjs', import.meta.url));
const children: ChildProcess[] = [];

afterEach(() => children.splice(0).forEach((child) => child.kill('SIGKILL')));

describe('a process that ends during a lease', () => {
  const used = useLocalPool();

  async function start(ending: string): Promise<{ child: ChildProcess; output: string[] }> {
    const { baseUrl, token } = used.local;
    const env = { ...process.env, BROWSER_POOL_BASE_URL: baseUrl, BROWSER_POOL_ACCESS_TOKEN: token };
    const child = spawn(process.execPath, [program, ending], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    children.push(child);
    const output: string[] = [];
    child.stdout.on('data', (text) => output.push(String(text)));
    child.stderr.on('data', (text) => output.push(String(text)));
    return { child, output };
  }

  async function ends(child: ChildProcess): Promise<[number | null, NodeJS.Signals | null]> {
    return (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  }

  async function seen(text: string, output: string[]): Promise<void> {
    await expect.poll(() => output.join(''), { timeout: 240_000 }).toContain(text);
  }

  /** A process waits at most 2 s for its release process. */
  async function expectRelease(): Promise<void> {
    await expect.poll(() => used.local.stats().leased).toBe(0);
  }

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'releases the browser on %s, and still ends by this signal',
    async (signal) => {
      const { child, output } = await start('hang');
      await seen('leased', output);
      expect(used.local.stats().leased).toBe(1);
      child.kill(signal);
      expect(await ends(child)).toEqual([null, signal]);
      await expectRelease();
    },
  );

  it.each([
    ['process.exit', 'exit', 7],
    ['process.exit while its release is under way', 'exit-after-run', 7],
    ['an uncaught exception', 'throw', 1],
    ['an unhandled rejection', 'reject', 1],
    ['an empty event loop', 'empty', 0],
    ['a release in time', 'release', 0],
  ])('releases the browser at %s, and keeps the exit code', async (_name, ending, code) => {
    const { child } = await start(ending);
    expect(await ends(child)).toEqual([code, null]);
    await expectRelease();
  });

  it('releases the browser after SIGKILL with releaseOnCrash: true, through a process whose arguments contain no secret', async () => {
    const { child, output } = await start('watched');
    await seen('leased', output);
    const watcher = programsOf(child.pid!).find((command) => command.includes('release-process'));
    expect(watcher).toBeDefined();
    expect(watcher).not.toContain(used.local.token);
    child.kill('SIGKILL');
    expect(await ends(child)).toEqual([null, 'SIGKILL']);
    await expectRelease();
  });

  it('does not end a process whose own handler takes the signal, and releases the browser when the handler exits', async () => {
    const { child, output } = await start('own-handler');
    await seen('ready', output);
    child.kill('SIGTERM');
    expect(await ends(child)).toEqual([3, null]);
    expect(output.join('')).toContain('my own handler');
    await expectRelease();
  });
});
