import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { startLocalPool } from '../../src/local.js';
import { Api, closed, tryWebSocket, until } from './support.js';

describe('close', () => {
  it('ends waits, sockets, browsers and profiles, and can be called again', async () => {
    const pool = await startLocalPool({ pools: [{ size: 2 }] });
    const api = new Api(pool);
    const sessions = [await api.lease(), await api.lease()];
    const urls = sessions.flatMap(({ cdp_ws_url, webdriver_ws_url }) => [cdp_ws_url, webdriver_ws_url]);
    const sockets = await Promise.all(urls.map((url) => tryWebSocket(url)));
    const waiting = api.acquire();
    await until('it waits', () => pool.stats().waiting === 1);
    expect(browsersBelow(tmpdir()).length).toBeGreaterThan(2);
    await Promise.all([pool.close(), pool.close()]);
    expect(await waiting).toMatchObject({ status: 503, body: { code: 'service_unavailable' } });
    await Promise.all(sockets.map(({ socket }) => closed(socket)));
    expect(profilesIn(tmpdir())).toEqual([]);
    await until('every process is gone', () => browsersBelow(tmpdir()).length === 0, 2_000);
    await expect(fetch(pool.baseUrl)).rejects.toThrow('fetch failed');
    expect(pool.stats()).toMatchObject({ idle: 0, leased: 0, starting: 0, waiting: 0 });
    await pool.close();
  });

  it('ends browsers that are still starting', async () => {
    const pool = await startLocalPool({ pools: [{ size: 6 }] });
    expect(pool.stats().starting).toBeGreaterThan(0);
    await pool.close();
    expect(profilesIn(tmpdir())).toEqual([]);
  });

  it('comes with "await using"', async () => {
    let url: string;
    {
      await using pool = await startLocalPool();
      url = pool.baseUrl;
    }
    await expect(fetch(url)).rejects.toThrow('fetch failed');
  });
});

describe('a process that ends without close', () => {
  it.concurrent.each([
    ['by process.exit', 'exit', 7],
    ['by an uncaught exception', 'throw', 1],
    ['by an unhandled rejection', 'reject', 1],
  ])('leaves nothing: %s', async (_how, way, code) => {
    const child = await startChild(way);
    expect(await child.ended).toEqual([code, null]);
    await child.expectNothingLeft();
  });

  it.concurrent.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'leaves nothing, and dies of %s',
    async (signal) => {
      const child = await startChild('wait');
      child.process.kill(signal);
      expect(await child.ended).toEqual([null, signal]);
      await child.expectNothingLeft();
    },
  );

  it.concurrent('leaves the signal to the listener of somebody else', async () => {
    const child = await startChild('own-listener');
    child.process.kill('SIGINT');
    expect(await child.ended).toEqual([5, null]);
    expect(child.output()).toContain('closed by its own listener, 1 idle until then');
    await child.expectNothingLeft();
  });

  it.concurrent(
    'dies of a signal beside the package signal-exit, which waits for other listeners to go',
    async () => {
      const child = await startChild('signal-exit');
      child.process.kill('SIGTERM');
      expect(await child.ended).toEqual([null, 'SIGTERM']);
      expect(child.output()).toContain('signal-exit is last');
      await child.expectNothingLeft();
    },
  );

  it.concurrent('leaves no browser even when it is killed outright', async () => {
    const child = await startChild('wait');
    child.process.kill('SIGKILL');
    expect(await child.ended).toEqual([null, 'SIGKILL']);
    await until('the browsers are gone', () => browsersBelow(child.folder).length === 0);
    rmSync(child.folder, { recursive: true, force: true });
  });
});

interface Child {
  process: ChildProcess;
  folder: string;
  ended: Promise<unknown[]>;
  output: () => string;
  expectNothingLeft: () => Promise<void>;
}

/** Runs children/pool.ts until its browsers are there, in a folder for temporary files of its own. */
async function startChild(way: string): Promise<Child> {
  const folder = mkdtempSync(join(tmpdir(), 'c-'));
  const script = fileURLToPath(new URL('children/pool.ts', import.meta.url));
  const env = { ...process.env, TMPDIR: folder, TSX_DISABLE_CACHE: '1' };
  const child = spawn(process.execPath, ['--import', 'tsx', script, way], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += String(chunk)));
  const ended = once(child, 'exit');
  await until('it has started', () => output.includes('ready') || child.exitCode !== null, 20_000);
  return {
    process: child,
    folder,
    ended,
    output: () => output,
    expectNothingLeft: async () => {
      expect(output).toContain('ready');
      expect(profilesIn(folder)).toEqual([]);
      await until('every process is gone', () => browsersBelow(folder).length === 0, 2_000);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function profilesIn(folder: string): string[] {
  return readdirSync(folder).filter((name) => /pooled-browser|chromium/i.test(name));
}

/** Processes whose command line or environment names a profile below this folder. */
function browsersBelow(folder: string): string[] {
  const below = join(folder, 'pooled-browser-');
  return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && readProcess(pid).includes(below));
}

function readProcess(pid: string): string {
  try {
    return ['cmdline', 'environ'].map((file) => readFileSync(`/proc/${pid}/${file}`, 'utf8')).join('\0');
  } catch {
    return '';
  }
}
