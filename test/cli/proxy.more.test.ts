import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { Site } from '../support/site.js';
import { FakeService, session, TOKEN } from '../support/fake-service.js';
import { titled, useLocalPool } from '../support/local.js';
import { PlayedBrowser } from '../support/played-browser.js';
import { processesOf } from '../support/processes.js';
import { useWholeBrowser } from '../support/whole-browser.js';
import type { Program } from '../support/program.js';
import { expectRefusal, hasTerminals, startAtTerminal, startClient } from './support.js';

// Lighthouse needs it.
useWholeBrowser();
const used = useLocalPool({ pools: [{ name: 'test', size: 2, timeoutSeconds: 300 }] });
const start = (...args: string[]) => startClient(['proxy', 'test', '--port', '0', ...args], used.local);
const NOW = new Date().toISOString();
const leased = () => used.local.stats().leased;

/** The address that the program has printed. */
async function addressOf(program: Program): Promise<string> {
  return (await program.prints(/Serving pool \S+ at (\S+)\n/))[1]!;
}

async function visit(url: string, title: string): Promise<void> {
  const browser = await chromium.connectOverCDP(url);
  await browser.contexts()[0]!.pages()[0]!.goto(titled(title));
  await browser.close();
}

it('prints a line when a browser is leased and when it is released, with its recording, and releases all at Ctrl-C', async () => {
  const proxy = start('--record');
  const url = await addressOf(proxy);
  await visit(url, 'one');
  await proxy.prints(/released  \w{32}  after [\d.]+ m?s  reused  replay http:\S+ \(while the pool runs\)\n/);
  await visit(`${url}/alice`, 'two');
  await proxy.prints(/leased    \w{32}  alice  after /);
  expect(leased()).toBe(1);
  const { code, stdout, stderr } = await proxy.end('SIGINT');
  expect({ code, stderr }).toEqual({ code: 0, stderr: 'Stopping.\n' });
  expect(stdout).toMatch(
    /released  \w{32}  alice  after [\d.]+ m?s  reused  replay http:\S+ \(while the pool runs\)\n$/,
  );
  expect(stdout).not.toContain(used.local.token);
  expect(leased()).toBe(0);
  await proxy.leavesNothing();
});

it('shows and moves the end that --lifetime sets, at most to --max-lifetime, and says before it when a lease ends', async () => {
  const proxy = start('--lifetime', '20s', '--max-lifetime', '25s', '--idle-timeout', '0');
  const url = await addressOf(proxy);
  const client = new WebSocket(`${url.replace('http', 'ws')}/alice`);
  await once(client, 'open');
  const lease = (await (await fetch(`${url}/alice/lease`)).json()) as { remaining: number };
  expect(lease).toEqual({
    name: 'alice',
    sessionId: expect.stringMatching(/^\w{32}$/),
    age: expect.any(Number),
    remaining: expect.any(Number),
  });
  const moved = await fetch(`${url}/alice/lease`, { method: 'POST', body: '{"extend": 1}' });
  expect(await moved.json()).toMatchObject({ name: 'alice', remaining: expect.any(Number) });
  const most = await fetch(`${url}/alice/lease`, { method: 'POST', body: '{"extend": "10m"}' });
  const latest = (await most.json()) as typeof lease;
  expect(latest.remaining).toBeLessThanOrEqual(25_000);
  expect(latest).toMatchObject({ notice: expect.stringContaining('--max-lifetime') as string });
  await proxy.prints(/The lease alice of session \w{32} ends in [\d.]+ s \(--lifetime\)\./);
  await proxy.end('SIGTERM');
});

it('prints which lease was refused a host, by its name', async () => {
  const proxy = start('--allow-hosts', 'a.test');
  const url = await addressOf(proxy);
  const browser = await chromium.connectOverCDP(`${url}/alice`);
  await expect(browser.contexts()[0]!.pages()[0]!.goto('http://127.0.0.1:2/')).rejects.toThrow('a.test');
  await proxy.prints(/\d\d:\d\d:\d\d  blocked   \w{32}  alice  127\.0\.0\.1:2, which is not allowed\n/);
  await browser.close();
  const { stderr } = await proxy.end('SIGTERM');
  expect(stderr).toBe('Stopping.\n');
});

it('ends at SIGTERM, and releases the browser, while the server of a client of Playwright works without end', async () => {
  await using site = await Site.open((_request, response) => response.end());
  const proxy = start('--json');
  const [, url] = await proxy.prints(/"type":"serving".*"playwright":"([^"]+)"/);
  const browser = await chromium.connect(url!);
  const page = await browser.newPage();
  await page.route(/(a+)+$/, (route) => route.continue());
  const endless = page.goto(`${site.url}/${'a'.repeat(100)}!`).catch(() => {});
  // A call after this one has no answer.
  const isBlocked = () => Promise.race([page.title().then(() => false), wait(500, true)]);
  await expect.poll(isBlocked).toBe(true);
  expect(await proxy.end('SIGTERM')).toMatchObject({ code: 0, stderr: 'Stopping.\n' });
  await endless;
  expect(leased()).toBe(0);
  await proxy.leavesNothing();
});

it('prints JSON, and saves the recordings in a folder', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'v-'));
  const proxy = start('--json', '--record-to', folder);
  const [, url] = await proxy.prints(/"type":"serving","pool":"test","url":"([^"]+)"/);
  await visit(url!, 'recorded');
  await proxy.prints(/"type":"released"/);
  await proxy.end('SIGTERM');
  const lines = proxy.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.map(({ type }) => type)).toEqual([
    'serving',
    'waiting',
    'leased',
    'connected',
    'disconnected',
    'released',
  ]);
  const [file] = readdirSync(folder);
  expect(lines.at(-1)).toMatchObject({
    released: 'reused',
    replayStatus: 'ready',
    files: [join(folder, file!)],
  });
  expect(lines.at(-1).replays[0].replay_view_url).toMatch(/^http/);
  expect(file).toMatch(/\.webm$/);
});

it('holds at most --max browsers', async () => {
  const proxy = start('--max', '1', '--acquire-timeout', '5s');
  const url = await addressOf(proxy);
  const first = await chromium.connectOverCDP(url);
  await expect(chromium.connectOverCDP(url)).rejects.toThrow(
    /503 Service Unavailable[^]*No browser became available/,
  );
  await proxy.prints(/refused   503  No browser became available/);
  await first.close();
  await proxy.end('SIGTERM');
});

it('loses no lease when a client and the proxy are killed, with --release-on-crash', async () => {
  const proxy = start('--release-on-crash');
  const url = await addressOf(proxy);
  const script = `new (require('ws'))(process.argv[1]).on('open', () => console.log('open'))`;
  const client = spawn(process.execPath, ['-e', script, url.replace('http', 'ws')]);
  await once(client.stdout, 'data');
  expect(leased()).toBe(1);
  client.kill('SIGKILL');
  await expect.poll(leased).toBe(0);
  const other = new WebSocket(url.replace('http', 'ws'));
  await once(other, 'open');
  expect(leased()).toBe(1);
  const commands = processesOf(proxy.folder).map(({ command }) => command);
  await proxy.end('SIGKILL');
  await expect.poll(leased).toBe(0);
  for (const words of commands) expect(words).not.toMatch(/jwt|eyJ/);
  for (const words of commands) expect(words).not.toContain(used.local.token);
});

it('serves lighthouse, which takes only a port, with --no-secret', async () => {
  const proxy = start('--no-secret');
  const { port } = new URL(await addressOf(proxy));
  await using site = await Site.open((_request, response) =>
    response.setHeader('content-type', 'text/html').end('<title>Shop</title><h1>Welcome</h1>'),
  );
  const report = join(proxy.folder, 'report.json');
  const args = [
    resolve('node_modules/lighthouse/cli/index.js'),
    site.url,
    `--port=${port}`,
    '--quiet',
    '--output=json',
    `--output-path=${report}`,
    '--only-audits=document-title',
    '--no-enable-error-reporting',
  ];
  const lighthouse = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  expect(await once(lighthouse, 'close')).toEqual([0, null]);
  expect(JSON.parse(readFileSync(report, 'utf8')).audits['document-title'].score).toBe(1);
  await proxy.prints(/released  .*  reused\n/);
  await proxy.end('SIGTERM');
}, 180_000);

it.runIf(hasTerminals)(
  'shows at a terminal how many browsers are leased and how many clients wait',
  async () => {
    const proxy = startAtTerminal(['proxy', 'test', '--port', '0'], used.local, 200);
    await proxy.prints(/0 leased, 0 connected, 0 waiting, 0 released/);
    const url = /http:\/\/127\.0\.0\.1:\d+\/[\w-]+/.exec(proxy.stdout)![0];
    const browser = await chromium.connectOverCDP(url);
    await proxy.prints(/1 leased, 1 connected, 0 waiting, 0 released/);
    await browser.close();
    await proxy.prints(/0 leased, 0 connected, 0 waiting, 1 released/);
    proxy.child.stdin!.write('\x03');
    expect(await proxy.ended).toMatchObject({ code: 0 });
  },
);

it('refuses a port that is in use, and prints the faults of the service', async () => {
  await using service = await FakeService.start();
  service.script('acquire', { status: 403, json: { code: 'forbidden', message: `no, ${TOKEN}` } });
  const proxy = startClient(['proxy', 'pool', '--port', '0'], service.options);
  const url = await addressOf(proxy);
  const ended = startClient(['proxy', 'pool', '--port', new URL(url).port], service.options).ended;
  expectRefusal(await ended, '--port');
  const client = new WebSocket(url.replace('http', 'ws'));
  const [error] = await once(client, 'error');
  expect(error.message).toContain('502');
  await proxy.prints(/refused   502  403 forbidden: no, /);
  expect((await proxy.end('SIGTERM')).stdout).not.toContain(TOKEN);
});

it('replaces no file by a recording, whatever id the service gives it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'v-'));
  for (const name of ['Makefile', 'taken.mp4']) writeFileSync(join(folder, name), 'mine');
  await using browser = await PlayedBrowser.start();
  await using service = await FakeService.start();
  service.script('acquire', { status: 200, json: session({ cdp_ws_url: browser.url }) });
  const ids = ['Makefile', 'taken', 'a b', 'a.b'];
  const json = ids.map((replay_id) => ({ replay_id, started_at: NOW, finished_at: NOW }));
  service.script('replays', { status: 200, json: [] }, { status: 200, json });
  service.script('start-replay', { status: 201, json: { replay_id: 'Makefile', started_at: NOW } });
  service.script('download', { status: 200, text: 'video', headers: { 'content-type': 'video/mp4' } });
  const proxy = startClient(['proxy', 'pool', '--port', '0', '--record-to', folder], service.options);
  const client = new WebSocket((await addressOf(proxy)).replace('http', 'ws'));
  await once(client, 'open');
  client.close();
  await proxy.prints(/released /);
  await proxy.end('SIGTERM');
  const found = readdirSync(folder).map((name) => `${name} ${readFileSync(join(folder, name), 'utf8')}`);
  expect(found.toSorted()).toEqual([
    'Makefile mine',
    'Makefile.mp4 video',
    expect.stringMatching(/^a_b-\w{6}\.mp4 video$/),
    'a_b.mp4 video',
    expect.stringMatching(/^taken-\w{6}\.mp4 video$/),
    'taken.mp4 mine',
  ]);
});

it('exec --lazy leases at the first connection, one browser for all of them, and cleans it', async () => {
  await using browser = await PlayedBrowser.start();
  await using service = await FakeService.start();
  const json = session({ cdp_ws_url: browser.url, browser_live_view_url: 'https://live.test' });
  service.script('acquire', { status: 200, json });
  const script = `
    const { WebSocket } = require('ws');
    const { BROWSER_POOL_CDP_WS_URL: cdp, BROWSER_POOL_LOCAL_CDP_WS_URL: local } = process.env;
    process.stdin.once('data', async () => {
      const sockets = [cdp, local, process.argv[1]].map((url) => new WebSocket(url));
      await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('open', resolve))));
      console.log(JSON.stringify({ cdp, env: Object.keys(process.env).filter((name) => /SESSION|LIVE/.test(name)) }));
      process.exit(3);
    });
    console.log('runs');`;
  const args = ['exec', 'pool', '--lazy', '--name', 'job', '--', 'node', '-e', script, '{endpoint}'];
  const exec = startClient(args, service.options, { stdin: 'pipe' });
  await exec.prints(/runs/);
  expect(service.requests).toEqual([]);
  exec.child.stdin!.write('go\n');
  const { code, stdout } = await exec.ended;
  expect(code).toBe(3);
  expect(stdout).toMatch(/"cdp":"ws:\/\/127\.0\.0\.1:\d+\/[\w-]{36}","env":\[\]/);
  expect(service.of('acquire').map(({ body }) => body?.['name'])).toEqual(['job']);
  expect(service.of('release').map(({ body }) => body)).toEqual([{ session_id: 'session-1', reuse: true }]);
});
