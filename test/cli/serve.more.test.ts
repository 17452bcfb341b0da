import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { SLOW_START, type Program } from '../support/program.js';
import { expectRefusal, runHere, startCli } from './support.js';

it('serves a pool, prints its address, and prints a line for each event', async () => {
  const serve = startCli(['serve', '--pool', 'tests=1', '--port', '0']);
  const post = await clientOf(serve);
  const granted = await post('/browser_pools/tests/acquire', { name: 'mine', acquire_timeout_seconds: 60 });
  expect(granted.status).toBe(200);
  const { session_id } = (await granted.json()) as { session_id: string };
  const short = session_id.slice(0, 8);
  await serve.prints(new RegExp(`leased +${short} +tests +mine`));
  const waiting = { name: 'second', acquire_timeout_seconds: 1 };
  expect((await post('/browser_pools/tests/acquire', waiting)).status).toBe(204);
  await serve.prints(/waiting +tests +second/);
  await serve.prints(/none free +204/);
  expect((await post('/browser_pools/tests/flush', {}, 'wrong-token')).status).toBe(401);
  await serve.prints(/refused +401 +POST .*\/flush/);
  await post('/browser_pools/tests/release', { session_id, reuse: false });
  await serve.prints(new RegExp(`released +${short}`));
  await serve.prints(new RegExp(`destroyed +${short} +tests +released without reuse`));
  expect(await serve.end('SIGINT')).toMatchObject({ code: 0, stderr: 'Stopping.\n' });
  await serve.leavesNothing();
});

it('opens windows of the size of --viewport, prints recordings, and leaves only those in --recordings at SIGHUP', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'recordings-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const serve = startCli(['serve', '--size', '2', '--viewport', '1000x700', '--recordings', folder]);
  const post = await clientOf(serve);
  const granted = await post('/browser_pools/default/acquire', { acquire_timeout_seconds: 60 });
  const { session_id, viewport } = (await granted.json()) as { session_id: string; viewport: object };
  expect(viewport).toMatchObject({ width: 1000, height: 700 });
  const replays = `/browsers/${session_id}/replays`;
  const { replay_id, replay_view_url } = (await (await post(replays)).json()) as Record<string, string>;
  const place = `${session_id.slice(0, 8)} +default +${replay_id}`;
  await serve.prints(new RegExp(`recording +${place}`));
  await post(`${replays}/${replay_id}/stop`);
  await serve.prints(new RegExp(`recorded +${place}, \\d+\\.\\d s, \\d+\\.\\d MB\n`));
  expect(serve.leftovers().length).toBeGreaterThan(1);
  expect(await serve.end('SIGHUP')).toMatchObject({ code: 0 });
  await serve.leavesNothing();
  await expect(post(replays)).rejects.toThrow('fetch failed');
  const page = fileURLToPath(replay_view_url!);
  expect([dirname(dirname(page)), existsSync(page)]).toEqual([folder, true]);
});

it('prints one line of JSON for each event with --json, the address first', async () => {
  const serve = startCli(['serve', '--json', '--pool', 'a', '--pool', 'b=1']);
  await serve.prints(/"browser-started".*\n/);
  const { code, stdout } = await serve.end('SIGTERM');
  expect(code).toBe(0);
  await serve.leavesNothing();
  const lines = stdout.trim().split('\n');
  const [first, ...events] = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(first).toEqual({
    type: 'serving',
    browser: 'chromium',
    baseUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    token: expect.any(String),
    dashboardUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/\?token=[0-9a-f]{32}$/),
    pools: [
      { name: 'a', size: 2 },
      { name: 'b', size: 1 },
    ],
  });
  expect(events.map(({ type }) => type)).toContain('browser-started');
  expect(events.at(-1)).toEqual({ type: 'closed' });
});

it('exits immediately, and leaves nothing behind, when it is interrupted while a browser starts', async () => {
  const serve = startCli(['serve', '--executable-path', fakeBrowser('sleep 60')]);
  await expect.poll(() => serve.leftovers().length, SLOW_START).toBeGreaterThan(1);
  expect(await serve.end('SIGINT')).toMatchObject({ code: 130, stdout: '' });
  await serve.leavesNothing();
});

it('exits, and leaves nothing behind, when the reader of its output is gone', async () => {
  const serve = startCli(['serve', '--size', '1']);
  const post = await clientOf(serve);
  serve.child.stdout!.destroy();
  await post('/browser_pools/default/acquire', { acquire_timeout_seconds: 60 }).catch(() => {});
  expect(await serve.ended).toMatchObject({ code: 1 });
  await serve.leavesNothing();
});

it('requires the token of the environment, and never prints it', async () => {
  const token = 'a-token-that-is-known-already';
  const serve = startCli(['serve', '--size', '1'], { BROWSER_POOL_ACCESS_TOKEN: token });
  const post = await clientOf(serve, token);
  expect((await post('/browser_pools/default/flush')).status).toBe(204);
  expect((await post('/browser_pools/default/flush', {}, 'another-token')).status).toBe(401);
  const { stdout, stderr } = await serve.end('SIGINT');
  expect(stdout + stderr).not.toContain(token);
  expect(stdout).not.toContain('export BROWSER_POOL_ACCESS_TOKEN');
});

it('refuses an invalid token of the environment, without printing it', async () => {
  const ended = await runHere(['serve'], { token: 'b a d t o k e n' });
  expectRefusal(ended, 'pooled-browser: BROWSER_POOL_ACCESS_TOKEN');
  expect(ended.stderr).not.toContain('b a d');
});

/** Returns a function that sends a POST request, with the printed token by default. */
async function clientOf(serve: Program, known?: string) {
  const [, baseUrl] = await serve.prints(/export BROWSER_POOL_BASE_URL=(\S+)/);
  const [, printed] = await serve.prints(/BROWSER_POOL_ACCESS_TOKEN[=:](.+)/);
  return (path: string, body?: object, token = known ?? printed) =>
    fetch(baseUrl + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' },
      ...(body && { body: JSON.stringify(body) }),
    });
}

function fakeBrowser(script: string): string {
  const path = join(process.env['TMPDIR']!, `fake-browser-${Math.random().toString(36).slice(2)}`);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}
