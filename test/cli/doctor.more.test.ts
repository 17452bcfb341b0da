import { describe, expect, it, vi } from 'vitest';
import {
  FakeService,
  JWT,
  session,
  TOKEN,
  UNREACHABLE,
  type Answer,
  type Route,
} from '../support/fake-service.js';
import { useLocalPool } from '../support/local.js';
import { type Ended, startProgram } from '../support/program.js';
import { installWithoutLibraries, interruptInTime, runHere, startCli, startClient } from './support.js';

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

/** The only faults: these checks, with this message. */
function only(message: RegExp, ...checks: string[]): object {
  return Object.fromEntries(checks.map((check) => [check, expect.stringMatching(message) as string]));
}

it('passes on the browsers of this machine, with local as the address, also where the environment names a proxy', async () => {
  const environment = { HTTP_PROXY: UNREACHABLE, HTTPS_PROXY: UNREACHABLE };
  const doctor = startCli(['doctor', 'any', '--base-url', 'local', ...PATIENT], environment);
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
    const { code, stdout, stderr } = await runHere(['doctor', 'test', ...PATIENT], used.local);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const times = 'acquire \\d+ ms, connect \\d+ ms, 1 \\+ 1 = 2 in \\d+ ms, release \\d+ ms';
    const lines = CHECKS.map((check) => {
      const detail = CONNECTIONS.includes(check) ? times : '.*';
      return expect.stringMatching(new RegExp(`^✓ ${check} +${detail} \\(\\d+ ms\\)$`)) as string;
    });
    expect(stdout.trim().split('\n')).toEqual(lines);
    expect(stdout).not.toContain(used.local.token);
    expect(used.local.stats()).toMatchObject({ leased: 0, destroyed: 0 });
  });

  it('leases nothing without a pool', async () => {
    const { granted } = used.local.stats();
    const { code, stdout } = await runHere(['doctor', '--json'], used.local);
    expect(code).toBe(0);
    const { checks } = JSON.parse(stdout) as Report;
    const skipped = checks.filter(({ status }) => status === 'skipped');
    expect(skipped.map(({ check }) => check)).toEqual(CHECKS.slice(CHECKS.indexOf('pool')));
    expect(used.local.stats().granted).toBe(granted);
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
});

it('prints what to install when no library is installed', async () => {
  const words = [installWithoutLibraries(), 'doctor', '--json', '--base-url', 'local'];
  const message = /neither playwright-core nor puppeteer-core is installed.*npm install playwright-core/;
  expect(faults(await startProgram(words).ended)).toEqual(only(message, 'libraries'));
});

it('finds no fault without a library if a browser can be leased: programs have their own', async () => {
  const words = [installWithoutLibraries(), 'doctor', 'any', '--base-url', 'local'];
  const { code, stdout } = await startProgram(words).ended;
  expect(stdout).toMatch(
    /- libraries +neither playwright-core nor puppeteer-core is installed[^]*exec, proxy, mcp and acquire/,
  );
  expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/✓ lease /) as string });
});

it('says, like serve, that BiDi needs chromium-bidi, which is no fault of a pool', async () => {
  const main = installWithoutLibraries('puppeteer-core');
  const environment = { BROWSER_POOL_ACCESS_TOKEN: TOKEN };
  const serve = startProgram([main, 'serve', '--size', '1'], environment);
  const [, baseUrl] = await serve.prints(/BASE_URL=(.*)[^]*CDP only.* npm install chromium-bidi/);
  const args = [main, 'doctor', 'default', '--json', ...PATIENT, '--base-url', baseUrl!];
  const ended = await startProgram(args, environment).ended;
  const { checks } = JSON.parse(ended.stdout) as Report;
  expect(checks.find(({ check }) => check === 'libraries')?.detail).toContain(
    'no chromium-bidi (a local pool',
  );
  const detail = expect.stringMatching(/^skipped: .*npm install chromium-bidi\.$/) as string;
  expect(checks.at(-1)).toMatchObject({ check: 'puppeteer bidi', status: 'skipped', detail });
  expect(ended.code).toBe(0);
  expect(await serve.end('SIGINT')).toMatchObject({ code: 0 });
});

type Script = Partial<Record<Route, Answer>>;

const refusal = (status: number) => ({ status, json: { code: 'no', message: 'no' } });

/** A browser whose WebSockets are at this address. */
function browserAt(address: string): Answer {
  const url = `${address}/?jwt=${JWT}`;
  return { status: 200, json: session({ cdp_ws_url: url, webdriver_ws_url: url }) };
}

it.each<[what: string, message: RegExp, checks: string[], answers: Script]>([
  ['WebSockets do not connect', /ECONNREFUSED.*a proxy or firewall that blocks WebSockets/, CONNECTIONS, {}],
  [
    'WebSockets are not encrypted',
    /is not encrypted \(ws\)/,
    CONNECTIONS,
    { acquire: browserAt('ws://far.test') },
  ],
  ['browsers are not released', /could not be released/, ['lease'], { release: refusal(403) }],
  ['the token is wrong', /Check the access token/, ['token'], { replays: refusal(401) }],
  ['the token gets a 403', /The token lacks a permission/, ['token'], { replays: refusal(403) }],
  ['the token gets a 500', /The service has an internal problem/, ['token'], { replays: refusal(500) }],
  ['WebSockets fail, although the service has no records', /ECONN/, CONNECTIONS, { pool: { status: 405 } }],
])('finds that %s, and releases each browser once', async (_what, message, checks, answers) => {
  const { found, service } = await examine(answers);
  expect(found).toEqual(only(message, ...checks));
  expect(service.of('release')).toHaveLength(service.of('acquire').length);
});

it('finds that there is no such pool', async () => {
  const { found, checks } = await examine({ pool: refusal(404), acquire: refusal(404) });
  expect(found).toEqual(only(/The service has no pool test/, 'lease'));
  expect(checks.find(({ check }) => check === 'pool')).toMatchObject({ status: 'note' });
});

it('finds that all browsers are leased, and their number', async () => {
  const record = { id: 'pool-1', available_count: 0, acquired_count: 1, browser_pool_config: { size: 1 } };
  const pool = { status: 200, json: record };
  const { found, checks } = await examine({ pool, acquire: { status: 204 } }, '--acquire-timeout', '1s');
  expect(found).toEqual(only(/No browser became available.*-> All browsers may be leased/, 'lease'));
  expect(checks.find(({ check }) => check === 'pool')?.detail).toContain('idle 0, leased 1, size 1');
});

/** Runs doctor at a service with these answers. */
async function examine(answers: Script, ...flags: string[]) {
  await using service = await FakeService.start();
  for (const [route, answer] of Object.entries(answers)) service.script(route as Route, answer);
  const args = ['doctor', 'test', '--json', ...PATIENT, ...flags];
  const ended = await runHere(args, service.options);
  return { found: faults(ended), checks: (JSON.parse(ended.stdout) as Report).checks, service };
}

it('finds that nothing listens there', async () => {
  const ended = await runHere(['doctor', 'test', '--json', '--base-url', UNREACHABLE], { token: TOKEN });
  expect(faults(ended)).toEqual(
    only(/ECONNREFUSED.*Nothing listens at this address. Check the address/, 'reachable'),
  );
});

it('names the proxy that it uses without its password, and finds that the proxy does not run', async () => {
  const proxy = UNREACHABLE.replace('//', '//ada:secret-pass@');
  vi.stubEnv('HTTPS_PROXY', proxy);
  const service = { baseUrl: 'https://service.test', token: TOKEN };
  const ended = await runHere(['doctor', 'test', '--json'], service);
  const message =
    /the proxy http:\/\/127\.0\.0\.1:2 could not be reached: .*ECONNREFUSED.* -> Check HTTPS_PROXY/;
  expect(faults(ended)).toEqual(only(message, 'reachable'));
  expect(ended.stdout).toContain(`https://service.test/, through the proxy ${UNREACHABLE}`);
  expect(ended.stdout).not.toContain('secret-pass');
});

it.each([
  [{}, /pass --base-url, or set BROWSER_POOL_BASE_URL to your service, or to local/],
  [{ baseUrl: 'http://far.test' }, /must begin with https:\/\//],
])('finds that the address is missing or wrong: %j', async (service, message) => {
  const ended = await runHere(['doctor', 'test', '--json'], service);
  expect(faults(ended)).toEqual(only(message, 'address'));
});

it('finds that the token is missing, and prints it in two lines', async () => {
  await using service = await FakeService.start();
  const { code, stdout, stderr } = await runHere(['doctor', 'test', '--base-url', service.baseUrl]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
  expect(stdout).toMatch(/^✗ token +The access token is missing: set the environment variable/m);
  expect(stdout).toMatch(/^- lease +skipped: needs token$/m);
});

it('does not show the 401 of a request without a token as a finding', async () => {
  await using service = await FakeService.start();
  service.script('replays', (response, { headers }) => {
    response.writeHead(headers.authorization === `Bearer ${TOKEN}` ? 404 : 401).end();
  });
  const { stdout } = await runHere(['doctor'], service.options);
  expect(stdout).toContain('accepted');
  expect(stdout).not.toMatch(/status \d+/);
});
