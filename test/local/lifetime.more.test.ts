import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { startLocalPool } from '../../src/local.js';
import { processesOf } from '../support/processes.js';
import { useWholeBrowser } from '../support/whole-browser.js';
import { expectNothingLeft, profilesIn, startChild } from './children/child.js';
import { Api, closed, tryWebSocket, until } from './support.js';

// The child processes of a headless shell do not show whose they are.
useWholeBrowser();

describe('close', () => {
  it('ends waiting requests, WebSockets, browsers and profiles, and can be called again', async () => {
    const pool = await startLocalPool({ pools: [{ size: 2 }] });
    const api = new Api(pool);
    const sessions = [await api.lease(), await api.lease()];
    const urls = sessions.flatMap(({ cdp_ws_url, webdriver_ws_url }) => [cdp_ws_url, webdriver_ws_url]);
    const sockets = await Promise.all(urls.map((url) => tryWebSocket(url)));
    const waiting = api.acquire();
    await until('the request waits', () => pool.stats().waiting === 1);
    expect(browsers().length).toBeGreaterThan(2);
    await Promise.all([pool.close(), pool.close()]);
    expect(await waiting).toMatchObject({ status: 503, body: { code: 'service_unavailable' } });
    await Promise.all(sockets.map(({ socket }) => closed(socket)));
    expect(profilesIn(tmpdir())).toEqual([]);
    await until('every process has ended', () => browsers().length === 0, 20_000);
    await expect(fetch(pool.baseUrl)).rejects.toThrow('fetch failed');
    expect(pool.stats()).toMatchObject({ idle: 0, leased: 0, starting: 0, waiting: 0 });
    await pool.close();
  });

  it('is called by "await using", and ends browsers that are still starting', async () => {
    let url: string;
    {
      await using pool = await startLocalPool({ pools: [{ size: 6 }] });
      expect(pool.stats().starting).toBeGreaterThan(0);
      url = pool.baseUrl;
    }
    expect(profilesIn(tmpdir())).toEqual([]);
    await expect(fetch(url)).rejects.toThrow('fetch failed');
  });
});

describe('a process that ends without close leaves no process and no profile', () => {
  it.concurrent.each<[how: string, way: string, end: [code: number | null, signal: NodeJS.Signals | null]]>([
    ['by process.exit', 'exit', [7, null]],
    ['by SIGTERM, also when the package signal-exit listens', 'signal-exit', [null, 'SIGTERM']],
    ['by SIGKILL, which leaves its profile', 'wait', [null, 'SIGKILL']],
  ])('%s', async (_how, way, end) => {
    const child = await startChild(way);
    if (end[1]) child.process.kill(end[1]);
    expect(await child.ended).toEqual(end);
    if (way === 'signal-exit') expect(child.output()).toContain('signal-exit is last');
    await expectNothingLeft(child);
  });

  it.concurrent('when another listener of the signal decides about the end', async () => {
    const child = await startChild('own-listener');
    child.process.kill('SIGINT');
    expect(await child.ended).toEqual([5, null]);
    expect(child.output()).toContain('closed by its own listener, 1 idle until then');
    await expectNothingLeft(child);
  });
});

function browsers() {
  return processesOf(tmpdir()).filter(({ command }) => /chrom/i.test(command));
}
