import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { findBrowser, startLocalPool, type LocalPoolEvent } from '../../src/local.js';
import { startApi, until } from './support.js';

const folder = mkdtempSync(join(tmpdir(), 'broken-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('startLocalPool', () => {
  it('rejects with the reason when the browser does not start, and leaves nothing', async () => {
    const executablePath = script('broken', 'echo "no display, token=abcdefgh" >&2; exit 3');
    const started = startLocalPool({ executablePath, pools: [{ size: 3 }] });
    await expect(started).rejects.toMatchObject({
      name: 'LocalPoolError',
      code: 'ERR_LOCAL_POOL',
      message: expect.stringMatching(
        /broken did not start: it ended with exit code 3.*\n.*no display, token=\[redacted\]/s,
      ),
    });
  });

  it('rejects when the port is taken, naming the option', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const { port } = other.address() as AddressInfo;
    await expect(startLocalPool({ port })).rejects.toThrow(`port ${port} (option port): it is in use`);
    other.close();
  });

  it('rejects when there is no such browser, and says how to get one', async () => {
    await expect(startLocalPool({ executablePath: '/no/such/chrome' })).rejects.toMatchObject({
      name: 'BrowserNotFoundError',
      message: expect.stringContaining('npx pooled-browser install-browser'),
    });
  });
});

describe('a browser that stops working later', () => {
  it('is tried again ever more rarely, and acquires are told why', async () => {
    const real = await findBrowser();
    const path = script('fickle', `exec ${real} "$@"`);
    const events: LocalPoolEvent[] = [];
    const api = await startApi({ executablePath: path, onLog: (event) => void events.push(event) });
    const failures = () => events.filter(({ type }) => type === 'browser-start-failed').length;
    script('fickle', 'echo "disk full" >&2; exit 1');
    const session = await api.lease();
    const waiting = api.acquire();
    await until('it waits', () => api.pool.stats().waiting === 1);
    await api.release(session, false);
    expect(await waiting).toMatchObject({
      status: 500,
      body: { code: 'internal_error', inner_error: { code: 'browser_start_failed' } },
    });
    expect((await api.acquire()).body.inner_error?.message).toContain('disk full');
    await until('it has failed again', () => failures() >= 3);
    expect(failures()).toBeLessThan(6);
    script('fickle', `exec ${real} "$@"`);
    await until('it has recovered', () => api.pool.stats().idle === 1);
    await api.release(await api.lease());
  });
});

/** A program that stands in for a browser. */
function script(name: string, body: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${body}\n`);
  chmodSync(path, 0o755);
  return path;
}
