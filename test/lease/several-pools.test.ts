import { beforeEach, afterEach, describe, expect, it } from 'vitest';
import { BrowserPool, leaseBrowser, runOf, withPooledBrowser } from '../../src/index.js';
import type { RunEvent, RunOptions } from '../../src/index.js';
import { reply, UNREACHABLE, type Answer } from '../support/fake-service.js';
import { PlayedLease } from '../support/played-lease.js';

let first: PlayedLease;
let second: PlayedLease;
let pools: [BrowserPool, BrowserPool];
const events: RunEvent[] = [];
const onEvent = (event: RunEvent) => void events.push(event);

beforeEach(async () => {
  first = await PlayedLease.start();
  second = await PlayedLease.start();
  pools = [
    new BrowserPool('first', first.service.options),
    new BrowserPool('second', second.service.options),
  ];
  events.length = 0;
});
afterEach(async () => {
  for (const one of [...pools, first, second]) await one[Symbol.asyncDispose]();
});

const run = (options: RunOptions = {}, asked: readonly BrowserPool[] = pools) =>
  withPooledBrowser(asked, () => 'value', { connector: second.connector, onEvent, ...options });
const rejection = (call: Promise<unknown>) =>
  call.then(
    () => expect.fail('The call has succeeded.'),
    (error: Error) => error,
  );
const told = (type: string) => events.filter((event) => event.type === type);
const requestsTo = ({ service }: PlayedLease) =>
  service.requests.filter(({ path }) => path.endsWith('/acquire')).length;
const refusal = (status: number, code = 'some_code', headers = {}): Answer => ({
  status,
  json: { code, message: 'a message' },
  headers,
});

it('the first pool leases the browser, and the result and the events name it', async () => {
  expect(await run()).toMatchObject({ value: 'value', pool: 'first', acquireAttempts: 1 });
  expect(told('acquired')).toMatchObject([{ pool: 'first' }]);
  expect(told('ended')).toMatchObject([{ pool: 'first' }]);
  expect([requestsTo(first), requestsTo(second)]).toEqual([1, 0]);
});

describe('the next pool is asked at once', () => {
  it.each<[string, Answer, object]>([
    ['an outage', refusal(503), { name: 'PoolServiceError', status: 503 }],
    ['a fault of a gateway', refusal(502), { name: 'PoolServiceError', status: 502 }],
    ['a required payment', refusal(402), { name: 'PoolServiceError', status: 402 }],
    ['a quota', refusal(403, 'quota_exceeded'), { name: 'PoolServiceError', status: 403 }],
    ['a long pause', refusal(429, 'rate_limited', { 'retry-after': '60' }), { status: 429 }],
    ['a broken connection', (response) => void response.socket!.destroy(), { name: 'PoolConnectionError' }],
    [
      'a page instead of a session',
      (response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Welcome</html>'),
      { name: 'PoolResponseError' },
    ],
  ])('after %s', async (_what, answer, error) => {
    first.service.script('acquire', answer);
    expect(await run()).toMatchObject({ pool: 'second' });
    expect(told('failover')).toMatchObject([{ pool: 'first', from: 'first', to: 'second', error }]);
    expect([requestsTo(first), requestsTo(second)]).toEqual([1, 1]);
  });

  it('after connectAttempts of browsers that could not be reached', async () => {
    first.browser.hasEnded = true;
    expect(await run()).toMatchObject({ pool: 'second', acquireAttempts: 3 });
    expect(told('failover')).toMatchObject([
      { from: 'first', to: 'second', error: { name: 'ConnectError' } },
    ]);
    expect([requestsTo(first), requestsTo(second)]).toEqual([2, 1]);
    expect(first.service.requests.filter(({ path }) => path.endsWith('/release'))).toHaveLength(2);
  });

  it('if the first one lacks what an option needs, before anything is sent there', async () => {
    const { kernel } = await import('../../src/services.js');
    const service = { ...kernel, protocols: ['bidi'] as const };
    const lacking = new BrowserPool('lacking', { ...first.service.options, service });
    expect(await run({}, [lacking, pools[1]])).toMatchObject({ pool: 'second' });
    const error = { name: 'InvalidOptionError', option: 'protocol' };
    expect(told('failover')).toMatchObject([{ from: 'lacking', to: 'second', error }]);
    expect(first.service.requests).toEqual([]);
    const all = await rejection(
      run({}, [lacking, new BrowserPool('also', { ...first.service.options, service })]),
    );
    expect(all).toMatchObject({ name: 'InvalidOptionError', option: 'protocol' });
    expect(all.message).toMatch(/No pool can be used\. Pool "lacking": .* Pool "also": /);
    await lacking.close();
  });
});

describe('the call fails at once', () => {
  it('after an option that no browser can do, and leases no browser of the next pool', async () => {
    const connector = {
      ...second.connector,
      connect: async () => ({ handles: { page: 1, session: 2 }, isConnected: () => true }),
    };
    const error = await rejection(
      withPooledBrowser(pools, () => 'value', { connector: connector as never, onEvent }),
    );
    expect(error).toMatchObject({ name: 'InvalidOptionError', option: 'connector' });
    expect(error.message).not.toContain('Pool "first"');
    expect([requestsTo(first), requestsTo(second)]).toEqual([1, 0]);
  });

  it.each([
    ['a wrong token', 401, 'unauthorized'],
    ['a permission that is missing', 403, 'forbidden'],
    ['a pool that does not exist', 404, 'not_found'],
    ['a request that is refused', 400, 'bad_request'],
  ])('after %s', async (_what, status, code) => {
    first.service.script('acquire', refusal(status, code));
    const error = await rejection(run());
    expect(error).toMatchObject({ name: 'PoolServiceError', status, pool: 'first' });
    expect(runOf(error)).toMatchObject({ pool: 'first' });
    expect(requestsTo(second)).toBe(0);
  });
});

it('the next pool is asked when the first one had no browser for failoverAfter, and a browser that comes later is released', async () => {
  let late!: () => void;
  first.service.script('acquire', (response) => {
    late = () => reply(response, { status: 200, json: first.session() });
  });
  expect(await run({ failoverAfter: 100, pollTimeout: 1000 })).toMatchObject({ pool: 'second' });
  expect(told('failover')).toMatchObject([{ from: 'first', to: 'second' }]);
  expect(told('failover')[0]).not.toHaveProperty('error');
  late();
  await expect
    .poll(() => first.service.requests.filter(({ path }) => path.endsWith('/release')))
    .toHaveLength(1);
});

it('the polls of all but the last pool end at failoverAfter, and after the last pool the first one is asked again', async () => {
  const waits: unknown[] = [];
  for (const played of [first, second]) {
    let count = 0;
    played.service.script('acquire', async (response, { body }) => {
      waits.push(body!['acquire_timeout_seconds']);
      const isLate = played === first && ++count === 2;
      reply(response, isLate ? { status: 200, json: played.session() } : { status: 204 });
    });
  }
  const retry = { minTimeout: 100, factor: 1, randomize: false };
  expect(await run({ failoverAfter: 60, retry })).toMatchObject({ pool: 'first', value: 'value' });
  expect(told('failover')).toMatchObject([
    { from: 'first', to: 'second' },
    { from: 'second', to: 'first' },
  ]);
  expect(waits).toEqual([1, 1, 1]);
});

it('a lost answer of the second pool does not end the call while a request to the first one is open', async () => {
  let answer!: () => void;
  first.service.script('acquire', (response) => void (answer = () => reply(response, { status: 204 })), {
    status: 200,
    json: first.session(),
  });
  second.service.script('acquire', refusal(502));
  expect(await run({ failoverAfter: 60 })).toMatchObject({ pool: 'first', unknownAcquires: 2 });
  answer();
});

it('a pool that fails again does not end the call while the other one is only slow', async () => {
  first.service.script('acquire', refusal(500), refusal(500));
  const answers: (() => void)[] = [];
  const slow: Answer = (response) =>
    void answers.push(() => reply(response, { status: 200, json: second.session() }));
  second.service.script('acquire', slow, slow);
  const running = run({ failoverAfter: 60, retry: { retries: 0, minTimeout: 1 } });
  await expect.poll(() => answers.length, { timeout: 10_000 }).toBe(2);
  for (const answer of answers) answer();
  expect(await running).toMatchObject({ pool: 'second' });
  expect([requestsTo(first), told('failover').at(-1)]).toMatchObject([2, { from: 'first', to: 'second' }]);
});

it('a pool that was never reached is not asked again, and the error names what happened at each pool', async () => {
  const gone = new BrowserPool('gone', { baseUrl: UNREACHABLE, token: 'none' });
  second.service.script('acquire', { status: 204 });
  const retry = { retries: 2, minTimeout: 1 };
  const error = await rejection(run({ retry, unreachableTimeout: 50 }, [gone, pools[1]]));
  expect(error).toMatchObject({ name: 'AcquireTimeoutError', pool: 'second' });
  expect(error.message).toMatch(
    /in pool "gone" and "second".*Pool "gone": .*could not be reached.*Pool "second": it had no browser/,
  );
  await gone.close();
});

it('the error of the last pool tells why the pools before it could not be used', async () => {
  first.service.script('acquire', refusal(402));
  second.service.script('acquire', refusal(403, 'plan_limit'));
  const error = await rejection(run());
  expect(error).toMatchObject({ name: 'PoolServiceError', status: 403 });
  expect(error.message).toMatch(/403 plan_limit: a message\. .* Pool "first": 402 some_code: a message\./);
  expect(error.stack).toContain('Pool "first": 402');
});

it('calls leave a pool with an outage to the one that asks it, and come back when it works again', async () => {
  first.service.script('acquire', refusal(503));
  await run({ retry: { minTimeout: 300, randomize: false } });
  await run();
  // The outage is known: no request was sent.
  expect(requestsTo(first)).toBe(1);
  expect(told('failover')).toHaveLength(2);
  first.service.script('acquire', { status: 200, json: first.session() });
  await expect.poll(async () => (await run()).pool, { timeout: 5000, interval: 100 }).toBe('first');
});

it('a lease takes the same list, and a pool that is named twice is asked once', async () => {
  first.service.script('acquire', refusal(503));
  const options = { connector: second.connector };
  await using lease = await leaseBrowser(pools, options);
  expect(lease.page).toBe('a page');
  expect((await lease.release()).pool).toBe('second');
  const twice = await rejection(run({ retry: { retries: 0 } }, [pools[0], pools[0]]));
  expect(twice.message).not.toContain('Pool "first":');
});

it.each([
  ['an empty list', []],
  ['a value that is no pool', [5]],
])('%s is refused before anything is sent', async (_what, given) => {
  const error = await rejection(run({}, given as never));
  expect(error).toMatchObject({ name: 'InvalidOptionError', option: 'pool' });
});

it('a closed pool ends the calls that may use it', async () => {
  let answer = () => {};
  second.service.script('acquire', (response) => {
    answer = () => reply(response, { status: 204 });
  });
  first.service.script('acquire', refusal(503));
  const running = rejection(run());
  await expect.poll(() => requestsTo(second)).toBe(1);
  void pools[0].close();
  expect(await running).toMatchObject({ name: 'PoolClosedError', pool: 'first' });
  answer();
});
