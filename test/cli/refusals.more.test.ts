import { describe, expect, it } from 'vitest';
import { FakeService, TOKEN, UNREACHABLE } from '../support/fake-service.js';
import { runCli, startClient } from './support.js';

/** Every command that sends requests to a service, with the route of its first request. */
const CLIENTS = [
  { args: ['acquire', 'pool'], route: 'acquire' },
  { args: ['exec', 'pool', '--', 'echo', 'ran'], route: 'acquire' },
  { args: ['map', 'pool', 'test/cli/task.mjs', 'LICENSE', '--concurrency', '1'], route: 'acquire' },
  { args: ['flush', 'pool', '--yes'], route: 'flush' },
  { args: ['replays', 'session-1'], route: 'replays' },
] as const;

describe.each(CLIENTS)('$args', ({ args, route }) => {
  it('prints how to set a missing token', async () => {
    const { code, stdout, stderr } = await runCli(args, { BROWSER_POOL_BASE_URL: 'https://pool.test' });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('set the environment variable BROWSER_POOL_ACCESS_TOKEN');
  });

  it('prints how to set a missing address', async () => {
    const { code, stdout, stderr } = await runCli(args, { BROWSER_POOL_ACCESS_TOKEN: TOKEN });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('pass --base-url, or set BROWSER_POOL_BASE_URL');
  });

  it.each([
    ['nowhere', 'must be an absolute URL'],
    ['http://far.test', 'must begin with https://'],
    ['https://user:secret-pass@pool.test', 'must not contain a user name'],
  ])('refuses the address %s', async (baseUrl, message) => {
    const [command, ...rest] = args;
    const environment = { BROWSER_POOL_ACCESS_TOKEN: TOKEN };
    const { code, stdout, stderr } = await runCli([command, '--base-url', baseUrl, ...rest], environment);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`--base-url or BROWSER_POOL_BASE_URL ${message}`);
    expect(stderr).not.toContain('secret-pass');
  });

  it.each([
    [401, 'Check the access token'],
    [403, 'The token lacks a permission'],
    [404, /The service has no pool pool|Session session-1 no longer exists/],
  ])('reports a %s with what to check, and without the token', async (status, message) => {
    await using service = await FakeService.start();
    service.script(route, { status, json: { code: 'its_code', message: `no, ${TOKEN}` } });
    const { code, stdout, stderr } = await startClient(args, service.options).ended;
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(`${status} its_code: no`);
    expect(stderr).toMatch(message);
    expect(stderr).not.toContain(TOKEN);
    expect(service.of(route)).toHaveLength(1);
  });
});

it('reports an unreachable service with every command', async () => {
  const ends = CLIENTS.map(async ({ args: [command, ...rest], route }) => {
    const wait = route === 'acquire' ? ['--acquire-timeout', '10s'] : [];
    const whole = [command, ...wait, '--base-url', UNREACHABLE, ...rest];
    const client = startClient(whole, { baseUrl: 'https://other.test', token: TOKEN });
    return { command, ...(await client.ended) };
  });
  for (const { command, code, stdout, stderr } of await Promise.all(ends)) {
    expect({ command, code, stdout }).toEqual({ command, code: 1, stdout: '' });
    expect(stderr).toContain(`The service at ${UNREACHABLE} could not be reached: connect ECONNREFUSED`);
  }
});

it('fails immediately if the service does not speak TLS', async () => {
  await using service = await FakeService.start();
  const baseUrl = service.baseUrl.replace('http:', 'https:');
  const { code, stderr } = await startClient(['acquire', 'pool'], { baseUrl, token: TOKEN }).ended;
  expect(code).toBe(1);
  expect(stderr).toBe(
    `pooled-browser: The service at ${baseUrl} does not speak TLS. Did you mean ${service.baseUrl}?\n`,
  );
});

it('prints an error on one line, and everything with --debug', async () => {
  await using service = await FakeService.start();
  const details = [{ code: 'a', message: 'first\n\u001b[31msecond\u001b[39m' }];
  service.script('acquire', { status: 400, json: { code: 'bad', message: 'wrong', details } });
  const { stderr } = await startClient(['acquire', 'pool'], service.options).ended;
  expect(stderr).toBe(
    'pooled-browser: 400 bad: wrong. Details: a: first second. Check the fields in the details.\n',
  );
  const debug = await startClient(['--debug', 'acquire', 'pool'], service.options).ended;
  expect(debug.stderr).toMatch(/^pooled-browser: PoolServiceError: 400 bad: wrong.*\n +at .*status: 400/s);
});

it('ends early for a service that was never reached', async () => {
  const args = ['acquire', 'pool', '--unreachable-timeout', '5s'];
  const { code, stderr } = await startClient(args, { baseUrl: UNREACHABLE, token: TOKEN }).ended;
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^pooled-browser: .*ECONNREFUSED.* Retrying\.\n.*No connection was opened for 5 s\./,
  );
});

it.each([
  [['acquire'], "missing required argument 'pool'"],
  [['acquire', 'a/b'], 'pool must not contain a slash'],
  [['acquire', 'pool', '--name', 'two words'], '--name must be a string of 1 to 255 letters'],
  [['acquire', 'pool', '--tag', 'novalue'], 'The value must be key=value.'],
  [['acquire', 'pool', '--tag', 'a=1', '--tag', 'a=2'], 'The key a is given twice.'],
  [['acquire', 'pool', '--start-url', 'nowhere'], 'must be an absolute URL'],
  [['acquire', 'pool', '--acquire-timeout', '30'], 'such as 500ms, 30s or 5m'],
  [['acquire', 'pool', '--acquire-timeout', '0s'], 'such as 500ms, 30s or 5m'],
  [['acquire', 'pool', '--release', 'leave'], 'Allowed choices are destroy, reuse.'],
  [['acquire', 'pool', '--token', 'abc'], "unknown option '--token'"],
  [['acquire', 'pool', '--acquire-timeot', '3s'], '(Did you mean --acquire-timeout?) For help'],
  [['acquire', 'pool', '--base-url', 'localhost:4411'], 'Did you mean http://localhost:4411?'],
  [['exec', 'pool'], "missing required argument 'command'"],
  [['exec', 'pool', 'ls', '-l'], "unknown option '-l'"],
  [['exec', 'pool', '--replays', 'all', '--', 'ls'], 'Allowed choices are list, record, off.'],
  [['flush', 'a', 'b', '--yes'], 'too many arguments'],
  [['flush', '..', '--yes'], 'pool must not be a relative path'],
  [['replays', 'a%2fb'], 'sessionId must not contain a slash'],
  [['doctor', 'pool', '--acquire-timeout', 'soon'], 'such as 500ms, 30s or 5m'],
])('refuses %j with exit code 2 before anything is sent', async (args, message) => {
  await using service = await FakeService.start();
  const { code, stdout, stderr } = await startClient(args, service.options).ended;
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(message);
  expect(service.requests).toEqual([]);
});
