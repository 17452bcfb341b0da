import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { FakeService, TOKEN, UNREACHABLE } from '../support/fake-service.js';
import { expectRefusal, runHere } from './support.js';

/** Every command that sends requests to a service, with the route of its first request and an answer that fails it. */
const CLIENTS = [
  { args: ['acquire', 'pool'], route: 'acquire', status: 404, advice: 'The service has no pool pool' },
  {
    args: ['exec', 'pool', '--', 'echo', 'ran'],
    route: 'acquire',
    status: 401,
    advice: 'Check the access token',
  },
  {
    args: ['map', 'pool', 'test/cli/task.mjs', 'LICENSE', '--concurrency', '1'],
    route: 'acquire',
    status: 403,
    advice: 'The token lacks a permission',
  },
  { args: ['flush', 'pool', '--yes'], route: 'flush', status: 404, advice: 'The service has no pool pool' },
  {
    args: ['replays', 'session-1'],
    route: 'replays',
    status: 404,
    advice: 'Session session-1 no longer exists',
  },
] as const;

let service: FakeService;
beforeEach(async () => {
  service = await FakeService.start();
  onTestFinished(() => service.close());
});

describe.each(CLIENTS)('$args', ({ args, route, status, advice }) => {
  it('prints how to set a missing token or address', async () => {
    const [command, ...rest] = args;
    const [tokenless, homeless, wrong] = [
      await runHere(args, { baseUrl: service.baseUrl }),
      await runHere(args, { token: TOKEN }),
      await runHere([command, '--base-url', 'nowhere', ...rest], { token: TOKEN }),
    ];
    expectRefusal(tokenless, 'set the environment variable BROWSER_POOL_ACCESS_TOKEN');
    expectRefusal(homeless, 'pass --base-url, or set BROWSER_POOL_BASE_URL');
    expectRefusal(wrong, '--base-url or BROWSER_POOL_BASE_URL must be local, or an absolute URL');
    expect(service.requests).toEqual([]);
  });

  it(`reports a ${status} with what to check, and without the token`, async () => {
    service.script(route, { status, json: { code: 'its_code', message: `no, ${TOKEN}` } });
    const { code, stdout, stderr } = await runHere(args, service.options);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(`${status} its_code: no`);
    expect(stderr).toContain(advice);
    expect(stderr).not.toContain(TOKEN);
    expect(service.of(route)).toHaveLength(1);
  });

  it('reports an unreachable service', async () => {
    const [command, ...rest] = args;
    const wait = route === 'acquire' ? ['--unreachable-timeout', '100ms'] : [];
    const whole = [command, ...wait, '--base-url', UNREACHABLE, ...rest];
    const { code, stdout, stderr } = await runHere(whole, service.options);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(`The service at ${UNREACHABLE} could not be reached: connect ECONNREFUSED`);
    expect(service.requests).toEqual([]);
  });
});

it('prints an error on one line, and everything with --debug', async () => {
  const details = [{ code: 'a', message: 'first\n\u001b[31msecond\u001b[39m' }];
  service.script('acquire', { status: 400, json: { code: 'bad', message: 'wrong', details } });
  const { stderr } = await runHere(['acquire', 'pool'], service.options);
  expect(stderr).toBe(
    'pooled-browser: 400 bad: wrong. Details: a: first second. Check the fields in the details. To find the cause, run: pooled-browser doctor pool\n',
  );
  const debug = await runHere(['--debug', 'acquire', 'pool'], service.options);
  expect(debug.stderr).toMatch(/^pooled-browser: PoolServiceError: 400 bad: wrong.*\n +at .*status: 400/s);
});
