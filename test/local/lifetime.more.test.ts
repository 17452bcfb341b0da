import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { startLocalPool } from '../../src/local.js';
import { browsersBelow, profilesIn, startChild } from './children/child.js';
import { Api, closed, tryWebSocket, until } from './support.js';
import { useWholeBrowser } from '../support/whole-browser.js';

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
    expect(browsersBelow(tmpdir()).length).toBeGreaterThan(2);
    await Promise.all([pool.close(), pool.close()]);
    expect(await waiting).toMatchObject({ status: 503, body: { code: 'service_unavailable' } });
    await Promise.all(sockets.map(({ socket }) => closed(socket)));
    expect(profilesIn(tmpdir())).toEqual([]);
    await until('every process has ended', () => browsersBelow(tmpdir()).length === 0, 20_000);
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

  it('is called by "await using"', async () => {
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
  ])('leaves no process and no profile: %s', async (_how, way, code) => {
    const child = await startChild(way);
    expect(await child.ended).toEqual([code, null]);
    await child.expectNothingLeft();
  });

  it.concurrent.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'leaves no process and no profile, and ends with %s',
    async (signal) => {
      const child = await startChild('wait');
      child.process.kill(signal);
      expect(await child.ended).toEqual([null, signal]);
      await child.expectNothingLeft();
    },
  );

  it.concurrent('does not end the process when another listener handles the signal', async () => {
    const child = await startChild('own-listener');
    child.process.kill('SIGINT');
    expect(await child.ended).toEqual([5, null]);
    expect(child.output()).toContain('closed by its own listener, 1 idle until then');
    await child.expectNothingLeft();
  });

  it.concurrent('ends with the signal when the package signal-exit also listens', async () => {
    const child = await startChild('signal-exit');
    child.process.kill('SIGTERM');
    expect(await child.ended).toEqual([null, 'SIGTERM']);
    expect(child.output()).toContain('signal-exit is last');
    await child.expectNothingLeft();
  });

  it.concurrent('leaves no browser after SIGKILL', async () => {
    const child = await startChild('wait');
    child.process.kill('SIGKILL');
    expect(await child.ended).toEqual([null, 'SIGKILL']);
    await until('the browsers have ended', () => browsersBelow(child.folder).length === 0);
    rmSync(child.folder, { recursive: true, force: true });
  });
});
