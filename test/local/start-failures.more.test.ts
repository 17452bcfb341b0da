import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { findBrowser, startLocalPool } from '../../src/local.js';
import { serve, startApi, until } from './support.js';

const folder = mkdtempSync(join(tmpdir(), 'broken-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('startLocalPool', () => {
  it('rejects with the output of a browser that does not start', async () => {
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

  it('rejects when the port is in use, and names the option', async () => {
    const port = Number(new URL(await serve()).port);
    await expect(startLocalPool({ port })).rejects.toThrow(`port ${port} (option port): the port is in use`);
  });
});

it('starts a browser again with growing delays, and fails acquire requests with the reason', async () => {
  const real = await findBrowser();
  const path = script('fickle', `exec ${real} "$@"`);
  const api = await startApi({ executablePath: path });
  const failures = () => api.eventsOf('browser-start-failed').length;
  script('fickle', 'echo "disk full" >&2; exit 1');
  const session = await api.lease();
  const waiting = api.acquire();
  await until('the request waits', () => api.pool.stats().waiting === 1);
  await api.release(session, false);
  expect(await waiting).toMatchObject({
    status: 500,
    body: { code: 'internal_error', inner_error: { code: 'browser_start_failed' } },
  });
  expect((await api.acquire()).body.inner_error?.message).toContain('disk full');
  await until('the start has failed again', () => failures() >= 3, 150_000);
  expect(failures()).toBeLessThan(6);
  script('fickle', `exec ${real} "$@"`);
  await until('the pool has recovered', () => api.pool.stats().idle === 1, 150_000);
  await api.release(await api.lease());
});

/** A program that stands in for a browser. */
function script(name: string, body: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${body}\n`);
  chmodSync(path, 0o755);
  return path;
}
