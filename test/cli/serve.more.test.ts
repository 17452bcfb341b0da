import { chmodSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { formatEvent } from '../../src/cli/serve.js';
import type { LocalPoolEvent } from '../../src/local.js';
import { interruptInTime, SLOW_START, startCli, type Ended, type Program } from './support.js';

it('serves a pool, prints its address, and prints a line for each event', async () => {
  const serve = startServe(['--pool', 'tests=1', '--port', '0']);
  const { baseUrl, token } = await address(serve);
  const acquire = { name: 'mine', acquire_timeout_seconds: 60 };
  const granted = await post(baseUrl, token, 'tests/acquire', acquire);
  expect(granted.status).toBe(200);
  const { session_id } = (await granted.json()) as { session_id: string };
  const short = session_id.slice(0, 8);
  await serve.prints(new RegExp(`leased +${short} +tests +mine`));
  const waiting = { name: 'second', acquire_timeout_seconds: 1 };
  expect((await post(baseUrl, token, 'tests/acquire', waiting)).status).toBe(204);
  await serve.prints(/waiting +tests +second/);
  await serve.prints(/none free +204/);
  expect((await post(baseUrl, 'wrong-token', 'tests/flush')).status).toBe(401);
  await serve.prints(/refused +401 +POST .*\/flush/);
  await post(baseUrl, token, 'tests/release', { session_id, reuse: false });
  await serve.prints(new RegExp(`released +${short}`));
  await serve.prints(new RegExp(`destroyed +${short} +tests +released without reuse`));
  expect(await serve.end('SIGINT')).toMatchObject({ code: 0, stderr: 'Stopping.\n' });
  await serve.leavesNothing();
});

it('causes faults with --chaos, the same for the same seed, and prints them', async () => {
  const outputs: (string | undefined)[][] = [];
  while (outputs.length < 2) {
    const serve = startServe(['--size', '1', '--chaos', '7']);
    const { baseUrl, token } = await address(serve);
    const faults = () => Array.from(serve.stdout.matchAll(/chaos +(\w+ at pool \d+)/g), ([, fault]) => fault);
    while (faults().length < 6) {
      const headers = { authorization: `Bearer ${token}`, connection: 'close' };
      // A fault without an answer must not stop this test.
      const signal = AbortSignal.timeout(100);
      await fetch(`${baseUrl}/browser_pools/default`, { headers, signal }).catch(() => {});
    }
    await serve.end('SIGINT');
    outputs.push(faults().slice(0, 6));
  }
  const [first, second] = outputs;
  expect(first!.join()).toMatch(/(status|delay|resetBefore|resetAfter|truncate|noAnswer) at pool \d+/);
  expect(second).toEqual(first);
});

it('prints the start of a recording, and its length and size', async () => {
  const serve = startServe(['--size', '1']);
  const { baseUrl, token } = await address(serve);
  const granted = await post(baseUrl, token, 'default/acquire', { acquire_timeout_seconds: 60 });
  const { session_id } = (await granted.json()) as { session_id: string };
  const replays = `${baseUrl}/browsers/${session_id}/replays`;
  const options = { method: 'POST', headers: { authorization: `Bearer ${token}`, connection: 'close' } };
  const started = await fetch(replays, options);
  const { replay_id } = (await started.json()) as { replay_id: string };
  await serve.prints(new RegExp(`recording +${session_id.slice(0, 8)} +default +${replay_id}`));
  await fetch(`${replays}/${replay_id}/stop`, options);
  const recorded = `recorded +${session_id.slice(0, 8)} +default +${replay_id}, \\d+\\.\\d s, \\d+\\.\\d MB\n`;
  await serve.prints(new RegExp(recorded));
  expect(await serve.end('SIGINT')).toMatchObject({ code: 0 });
  await serve.leavesNothing();
});

it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  'leaves nothing behind after %s, and exits with 0',
  async (signal) => {
    const serve = startServe(['--size', '2']);
    const { baseUrl, token } = await address(serve);
    await post(baseUrl, token, 'default/acquire', { acquire_timeout_seconds: 60 });
    expect(serve.leftovers().length).toBeGreaterThan(1);
    expect(await serve.end(signal)).toMatchObject({ code: 0 });
    await serve.leavesNothing();
    await expect(fetch(baseUrl)).rejects.toThrow('fetch failed');
  },
);

it('exits immediately, and leaves nothing behind, when it is interrupted while a browser starts', async () => {
  const serve = startServe(['--executable-path', fakeBrowser('sleep 60')]);
  await expect.poll(() => serve.leftovers().length, SLOW_START).toBeGreaterThan(1);
  expect(await serve.end('SIGINT')).toMatchObject({ code: 130, stdout: '' });
  await serve.leavesNothing();
});

it('quits at a second Ctrl-C', async () => {
  expect(await interruptInTime(interruptTwice)).toMatchObject({ code: 130 });
});

async function interruptTwice(): Promise<Ended> {
  const serve = startServe(['--size', '1']);
  const { baseUrl, token } = await address(serve);
  // A request whose body never ends delays the closing by a second.
  const socket = connect(Number(new URL(baseUrl).port), '127.0.0.1').on('error', () => {});
  await once(socket, 'connect');
  const head = `POST /browser_pools/default/acquire HTTP/1.1\r\nhost: ${new URL(baseUrl).host}\r\n`;
  socket.write(
    `${head}authorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: 9\r\n` +
      'expect: 100-continue\r\n\r\n',
  );
  // The server handles the request.
  await once(socket, 'data');
  serve.child.kill('SIGINT');
  await serve.prints(/Stopping/);
  const ended = await serve.insist(() => serve.child.kill('SIGINT'));
  await serve.leavesNothing();
  socket.destroy();
  return ended;
}

it('exits, and leaves nothing behind, when the reader of its output is gone', async () => {
  const serve = startServe(['--size', '1']);
  const { baseUrl, token } = await address(serve);
  serve.child.stdout!.destroy();
  await post(baseUrl, token, 'default/acquire', { acquire_timeout_seconds: 60 }).catch(() => {});
  expect(await serve.ended).toMatchObject({ code: 1 });
  await serve.leavesNothing();
});

it('prints one line of JSON for each event with --json, the address first', async () => {
  const serve = startServe(['--json', '--pool', 'a', '--pool', 'b=1']);
  await serve.prints(/"browser-started".*\n/);
  const { stdout } = await serve.end('SIGTERM');
  const [first, ...events] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(first).toEqual({
    type: 'serving',
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

it('opens windows of the size of --viewport, and refuses another notation', async () => {
  const serve = startServe(['--size', '1', '--viewport', '1000x700']);
  const { baseUrl, token } = await address(serve);
  const granted = await post(baseUrl, token, 'default/acquire', { acquire_timeout_seconds: 60 });
  expect(await granted.json()).toMatchObject({ viewport: { width: 1000, height: 700 } });
  await serve.end('SIGINT');
  const { code, stderr } = await startServe(['--viewport', 'big']).ended;
  expect(code).toBe(2);
  expect(stderr).toContain('The size must be a width and a height in pixels, such as 1280x720.');
});

it('requires the token of the environment, and never prints it', async () => {
  const token = 'a-token-that-is-known-already';
  const serve = startServe(['--size', '1'], { BROWSER_POOL_ACCESS_TOKEN: token });
  const [, baseUrl] = await serve.prints(/BROWSER_POOL_BASE_URL=(\S+)/);
  expect((await post(baseUrl!, token, 'default/flush')).status).toBe(204);
  expect((await post(baseUrl!, 'another-token', 'default/flush')).status).toBe(401);
  const { stdout, stderr } = await serve.end('SIGINT');
  expect(stdout + stderr).not.toContain(token);
  expect(stdout).not.toContain('export BROWSER_POOL_ACCESS_TOKEN');
});

it('refuses an invalid token of the environment, without printing it', async () => {
  const { code, stdout, stderr } = await startServe([], { BROWSER_POOL_ACCESS_TOKEN: 'b a d t o k e n' })
    .ended;
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain('pooled-browser: BROWSER_POOL_ACCESS_TOKEN');
  expect(stderr).not.toContain('b a d');
});

it('prints the output of a browser that does not start', async () => {
  const serve = startServe(['--executable-path', fakeBrowser('echo "no display" >&2; exit 3')]);
  const { code, stderr } = await serve.ended;
  expect(code).toBe(1);
  expect(stderr).toContain('no display');
  await serve.leavesNothing();
});

const RECORDED = {
  type: 'recording-finished',
  pool: 'tests',
  sessionId: '0123456789ab',
  replayId: 'r1',
  reason: 'stopped',
  milliseconds: 12_340,
  bytes: 3 * 1024 * 1024,
} as const;

it.each<[string, Partial<Extract<LocalPoolEvent, { type: 'recording-finished' }>>, string]>([
  ['a recording that was stopped', {}, '12.3 s, 3.0 MB'],
  [
    'a recording that a full disk ended',
    { reason: 'disk-full' },
    '12.3 s, 3.0 MB, incomplete: the disk is full',
  ],
  [
    'a recording that its size limit ended',
    { reason: 'disk-limit' },
    '12.3 s, 3.0 MB, incomplete: the recording reached its size limit',
  ],
  [
    'a recording without a video',
    { failure: 'it was not decoded', bytes: 0 },
    'no video: it was not decoded',
  ],
])('describes the end of %s in one line', (_which, change, text) => {
  const line = formatEvent({ ...RECORDED, ...change }, (_colour, text) => text);
  expect(line).toBe(`recorded      01234567  tests  r1, ${text}`);
});

function startServe(args: readonly string[], environment?: Record<string, string>): Program {
  const serve = startCli(['serve', ...args], environment);
  onTestFinished(() => void serve.child.kill('SIGKILL'));
  return serve;
}

async function address(serve: Program): Promise<{ baseUrl: string; token: string }> {
  const [, baseUrl] = await serve.prints(/export BROWSER_POOL_BASE_URL=(\S+)/);
  const [, token] = await serve.prints(/export BROWSER_POOL_ACCESS_TOKEN=(\S+)/);
  return { baseUrl: baseUrl!, token: token! };
}

async function post(baseUrl: string, token: string, path: string, body?: object): Promise<Response> {
  return fetch(`${baseUrl}/browser_pools/${path}`, {
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
