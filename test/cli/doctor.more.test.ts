import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  FakeService,
  JWT,
  session,
  TOKEN,
  UNREACHABLE,
  type Answer,
  type Route,
} from '../support/fake-service.js';
import { look, useLocalPool } from '../support/local.js';
import {
  hasTerminals,
  installWithoutLibraries,
  interruptInTime,
  startAtTerminal,
  startCli,
  startClient,
  startNode,
  type Ended,
} from './support.js';

interface Report {
  ok: boolean;
  checks: { check: string; status: string; detail: string; advice?: string; elapsed: number }[];
}

const CONNECTIONS = ['playwright cdp', 'puppeteer cdp', 'puppeteer bidi'];
const CHECKS = ['node', 'libraries', 'address', 'reachable', 'token', 'pool', 'lease', ...CONNECTIONS];

/** A busy machine may take longer than the default to start a browser. */
const PATIENT = ['--acquire-timeout', '60s'];

/** Returns the failed checks with their texts; fails unless doctor failed and hid the secrets. */
function faults({ code, stdout, stderr }: Ended): Record<string, string> {
  const { ok, checks } = JSON.parse(stdout) as Report;
  expect({ code, ok }).toEqual({ code: 1, ok: false });
  expect(checks.map(({ check }) => check)).toEqual(CHECKS);
  for (const secret of [TOKEN, JWT]) expect(stdout + stderr).not.toContain(secret);
  const failed = checks.filter(({ status }) => status === 'failed');
  return Object.fromEntries(failed.map(({ check, detail, advice }) => [check, `${detail} -> ${advice}`]));
}

function examine(service: { baseUrl: string; token: string }, ...args: string[]): Promise<Ended> {
  return startClient(['doctor', 'test', '--json', ...PATIENT, ...args], service).ended;
}

it('passes on the browsers of this machine, with local as the address', async () => {
  const doctor = startCli(['doctor', 'any', '--base-url', 'local', ...PATIENT]);
  const { code, stdout, stderr } = await doctor.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/✓ address +local: Chromium on this machine/);
  expect(stdout).toMatch(/✓ token +not needed/);
  expect(stdout.match(/1 \+ 1 = 2/g)).toHaveLength(CONNECTIONS.length);
  await doctor.leavesNothing();
});

describe('doctor, on a pool', () => {
  const used = useLocalPool();

  it('passes on a working pool, leases with each library and protocol, and prints each step with its time', async () => {
    const { code, stdout, stderr } = await startClient(['doctor', 'test', ...PATIENT], used.local).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stdout.trim().split('\n');
    expect(lines).toEqual(
      CHECKS.map((check) => expect.stringMatching(new RegExp(`^✓ ${check} +.* \\(\\d+ ms\\)$`)) as string),
    );
    for (const line of lines.slice(-CONNECTIONS.length)) {
      expect(line).toMatch(/acquire \d+ ms, connect \d+ ms, 1 \+ 1 = 2 in \d+ ms, release \d+ ms/);
    }
    expect(stdout).not.toContain(used.local.token);
    expect(used.local.stats()).toMatchObject({ leased: 0, destroyed: 0 });
  });

  it('leases nothing without a pool', async () => {
    const { granted } = used.local.stats();
    const { code, stdout } = await startClient(['doctor', '--json'], used.local).ended;
    expect(code).toBe(0);
    const { checks } = JSON.parse(stdout) as Report;
    const skipped = checks.filter(({ status }) => status === 'skipped');
    expect(skipped.map(({ check }) => check)).toEqual(CHECKS.slice(CHECKS.indexOf('pool')));
    expect(used.local.stats().granted).toBe(granted);
  });

  it('finds a wrong token', async () => {
    const found = faults(await examine({ token: TOKEN, baseUrl: used.local.baseUrl }));
    expect(found).toEqual({ token: expect.stringContaining('Check the access token') as string });
  });

  it('finds that there is no such pool', async () => {
    const ended = await startClient(['doctor', 'tset', '--json'], used.local).ended;
    expect(faults(ended)).toEqual({
      lease: expect.stringContaining('The service has no pool tset') as string,
    });
    const { checks } = JSON.parse(ended.stdout) as Report;
    expect(checks.find(({ check }) => check === 'pool')).toMatchObject({ status: 'note' });
  });

  it('finds that all browsers are leased, and their number', async () => {
    await look(used.pool, async () => {
      const ended = await examine(used.local, '--acquire-timeout', '1s');
      expect(ended.stdout).toContain('idle 0, leased 1, size 1');
      const lease = expect.stringMatching(
        /No browser became available.*-> All browsers may be leased/,
      ) as string;
      expect(faults(ended)).toEqual({ lease });
    });
  });

  it('releases its browser when it is interrupted', async () => {
    const ended = await interruptInTime(async () => {
      const doctor = startClient(['doctor', 'test', ...PATIENT], used.local);
      await doctor.prints(/lease /);
      return doctor.end('SIGINT');
    });
    expect(ended).toMatchObject({ code: 130 });
    expect(used.local.stats().leased).toBe(0);
  });

  it('prints what to install when no library is installed', async () => {
    const { baseUrl, token } = used.local;
    const environment = { BROWSER_POOL_BASE_URL: baseUrl, BROWSER_POOL_ACCESS_TOKEN: token };
    const words = [installWithoutLibraries(), 'doctor', 'test', '--json'];
    const message = /neither playwright-core nor puppeteer-core is installed.*npm install playwright-core/;
    expect(faults(await startNode(words, environment).ended)).toEqual({
      libraries: expect.stringMatching(message) as string,
    });
  });
});

it('reports, like serve, that BiDi needs chromium-bidi', async () => {
  const main = installWithoutLibraries('puppeteer-core');
  const environment = { BROWSER_POOL_ACCESS_TOKEN: TOKEN };
  const serve = startNode([main, 'serve', '--size', '1'], environment);
  const [, baseUrl] = await serve.prints(/BASE_URL=(.*)[^]*CDP only.* npm install chromium-bidi/);
  const args = [main, 'doctor', 'default', '--json', ...PATIENT, '--base-url', baseUrl!];
  const ended = await startNode(args, environment).ended;
  const { checks } = JSON.parse(ended.stdout) as Report;
  expect(checks.find(({ check }) => check === 'libraries')?.detail).toContain(
    'no chromium-bidi (a local pool',
  );
  const advice = /status 501: .*npm install chromium-bidi\. -> undefined$/;
  expect(faults(ended)).toEqual({ 'puppeteer bidi': expect.stringMatching(advice) as string });
  expect(await serve.end('SIGINT')).toMatchObject({ code: 0 });
});

/** An answer with a browser whose WebSockets are at this address. */
function browserAt(address: string): Answer {
  const url = `${address}/?jwt=${JWT}`;
  return { status: 200, json: session({ cdp_ws_url: url, webdriver_ws_url: url }) };
}

/** A proxy that answers each upgrade with a 403. */
async function startProxy(): Promise<string> {
  const proxy = createServer((_request, response) => response.writeHead(403).end());
  proxy.on('upgrade', (_request, socket) =>
    socket.on('error', () => {}).end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n'),
  );
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void proxy.close());
  return `ws://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}

const refusal = (status: number) => ({ status, json: { code: 'no', message: 'no' } });

it.each<[string, string[], RegExp, Partial<Record<Route, () => Answer | Promise<Answer>>>]>([
  [
    'WebSockets do not connect',
    CONNECTIONS,
    /ECONNREFUSED.*a proxy or firewall that blocks WebSockets/,
    { acquire: () => browserAt('ws://127.0.0.1:1') },
  ],
  [
    'a proxy answers the upgrade itself',
    CONNECTIONS,
    /status 403.*proxy or firewall/,
    { acquire: async () => browserAt(await startProxy()) },
  ],
  [
    'WebSockets are not encrypted',
    CONNECTIONS,
    /is not encrypted \(ws\)/,
    { acquire: () => browserAt('ws://far.test') },
  ],
  ['browsers are not released', ['lease'], /could not be released/, { release: () => refusal(403) }],
  ['the token gets a 403', ['token'], /The token lacks a permission/, { replays: () => refusal(403) }],
  ['the token gets a 500', ['token'], /The service has an internal problem/, { replays: () => refusal(500) }],
  [
    'WebSockets do not connect, of a service without records of its pools',
    CONNECTIONS,
    /ECONNREFUSED/,
    { pool: () => ({ status: 405 }) },
  ],
])('finds that %s, and releases each browser once', async (_what, checks, message, answers) => {
  await using service = await FakeService.start();
  for (const [route, answer] of Object.entries(answers)) service.script(route as Route, await answer());
  const found = faults(await examine(service.options));
  expect(found).toEqual(
    Object.fromEntries(checks.map((check) => [check, expect.stringMatching(message) as string])),
  );
  expect(service.of('release')).toHaveLength(service.of('acquire').length);
});

it('finds that nothing listens there, and names the proxy variables, but not their values', async () => {
  const environment = { HTTPS_PROXY: 'http://ada:secret-pass@proxy.test', BROWSER_POOL_ACCESS_TOKEN: TOKEN };
  const ended = await startCli(['doctor', 'test', '--json', '--base-url', UNREACHABLE], environment).ended;
  const advice =
    /ECONNREFUSED.*Nothing listens at this address.*HTTPS_PROXY is set, but pooled-browser connects directly/;
  expect(faults(ended)).toEqual({ reachable: expect.stringMatching(advice) as string });
  expect(ended.stdout).not.toContain('secret-pass');
});

it.each([
  [{}, 'pass --base-url, or set BROWSER_POOL_BASE_URL to your service, or to local'],
  [{ BROWSER_POOL_BASE_URL: 'http://far.test' }, 'must begin with https://'],
])('finds that the address is missing or wrong: %j', async (environment, message) => {
  const ended = await startCli(['doctor', 'test', '--json'], environment).ended;
  expect(faults(ended)).toEqual({ address: expect.stringContaining(message) as string });
});

it('finds that the token is missing, and prints it in two lines', async () => {
  await using service = await FakeService.start();
  const { code, stdout, stderr } = await startCli(['doctor', 'test', '--base-url', service.baseUrl]).ended;
  expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
  expect(stdout).toMatch(/^✗ token +The access token is missing: set the environment variable/m);
  expect(stdout).toMatch(/^- lease +skipped: needs token$/m);
});

it.runIf(hasTerminals)('colors its signs at a terminal, unless NO_COLOR is set', async () => {
  await using service = await FakeService.start();
  vi.stubEnv('TERM', 'xterm-256color');
  // Node shows no colors in an unknown CI.
  vi.stubEnv('CI', undefined);
  const ended = () => startAtTerminal(['doctor'], service.options).ended;
  expect((await ended()).stdout).toContain('\x1b[32m✓ node');
  vi.stubEnv('NO_COLOR', '1');
  expect((await ended()).stdout).toMatch(/^✓ node/);
});
