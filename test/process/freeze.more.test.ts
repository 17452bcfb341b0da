import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { FakeService, reply, session, type Answer, type Route } from '../support/fake-service.js';

const program = fileURLToPath(new URL('programs/suspended.mjs', import.meta.url));
/** Milliseconds: longer than the wait of a poll, and than the time between two pings. */
const FREEZE = 3000;

it.each<[string, string, Route | undefined]>([
  ['waits for a browser', 'acquiring', 'acquire'],
  ['is in its callback', 'callback-started', undefined],
  ['releases its browser', 'callback-ended', 'release'],
])('finishes a call when the machine sleeps while it %s', async (_what, step, route) => {
  await using service = await FakeService.start();
  const sockets = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  await once(sockets, 'listening');
  const url = `ws://127.0.0.1:${(sockets.address() as AddressInfo).port}`;
  const grant: Answer = { status: 200, json: session({ cdp_ws_url: url, webdriver_ws_url: url }) };
  service.script('acquire', grant);
  let answer = () => {};
  const json = route === 'acquire' ? grant : ({ status: 204 } as const);
  if (route) service.script(route, (response) => void (answer = () => reply(response, json)));

  const env = {
    ...process.env,
    BROWSER_POOL_BASE_URL: service.baseUrl,
    BROWSER_POOL_ACCESS_TOKEN: 'a-token',
  };
  const child = spawn(process.execPath, [program], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const closed = once(child, 'close');
  let output = '';
  child.stdout.on('data', (text) => (output += String(text)));
  if (step === 'callback-ended') child.stdin.write('go\n');
  await expect.poll(() => output, { timeout: 240_000 }).toContain(step);
  if (route) await expect.poll(() => service.of(route).length).toBe(1);
  child.kill('SIGSTOP');
  await sleep(FREEZE / 2);
  // The request of the sleeping process is answered while it sleeps.
  answer();
  await sleep(FREEZE / 2);
  child.kill('SIGCONT');
  if (step !== 'callback-ended') child.stdin.write('go\n');
  expect(await closed).toEqual([0, null]);
  expect(JSON.parse(output.trim().split('\n').at(-1)!)).toEqual({
    value: 'value',
    released: 'reused',
    acquireAttempts: 1,
  });
  expect(output).not.toContain('browser-lost');
  expect(service.released).toEqual(['session-1']);
  await new Promise((resolve) => sockets.close(resolve));
});
