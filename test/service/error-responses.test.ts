import { expect } from 'vitest';
import { isPoolServiceError, PoolServiceError } from '../../src/shared/service-errors.js';
import { BrowserPool } from '../../src/service/browser-pool.js';
import { FakeService, JWT, TOKEN, type Answer } from '../support/fake-service.js';
import { expectNoSecret, it, rejection } from './support.js';

/** Every method of a pool that sends a request. */
const CALLS: Record<string, (pool: BrowserPool) => Promise<unknown>> = {
  acquire: (pool) => pool.acquire(),
  release: (pool) => pool.release('session-1'),
  flush: (pool) => pool.flush(),
  replays: (pool) => pool.replays('session-1'),
  startReplay: (pool) => pool.startReplay('session-1'),
  stopReplay: (pool) => pool.stopReplay('session-1', 'r'),
  describe: (pool) => pool.describe(),
};
const ROUTES = ['acquire', 'release', 'flush', 'replays', 'start-replay', 'stop-replay', 'pool'] as const;

async function errorsFor(answer: Answer): Promise<Record<string, PoolServiceError>> {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  for (const route of ROUTES) service.script(route, answer);
  const errors: Record<string, PoolServiceError> = {};
  for (const [name, call] of Object.entries(CALLS)) {
    errors[name] = await rejection<PoolServiceError>(call(pool));
    expectNoSecret(errors[name]);
  }
  expect(service.requests).toHaveLength(ROUTES.length);
  expect(service.released.filter((id) => id !== 'session-1')).toStrictEqual([]);
  return errors;
}

const BODY = {
  code: 'bad_request',
  message: 'The request is not valid',
  details: [
    { code: 'invalid_input', message: 'name is taken' },
    { code: 'invalid_input' },
    { message: 'only text' },
  ],
  inner_error: { code: 'unique_violation', message: 'duplicate' },
};

it.for([400, 401, 403, 404, 409, 422, 429, 500, 502, 503])(
  'turns a %i with an Error body into an error with all fields of the body',
  async (status) => {
    const headers = { 'x-request-id': 'req-7', 'retry-after': '3' };
    const errors = await errorsFor({ status, json: BODY, headers });
    for (const [call, error] of Object.entries(errors)) {
      expect(error).toBeInstanceOf(PoolServiceError);
      expect(isPoolServiceError(error)).toBe(true);
      const facts = { status, requestId: 'req-7', retryAfter: 3000, pool: 'pool' };
      const { code, details, inner_error } = BODY;
      expect(error).toMatchObject({ name: 'PoolServiceError', code, details, inner_error, ...facts });
      for (const text of [`${status}`, 'bad_request', BODY.message, 'name is taken', 'only text'])
        expect(error.message).toContain(text);
      if (/replay|release/i.test(call)) expect(error.sessionId).toBe('session-1');
      else expect(error).not.toHaveProperty('sessionId');
    }
  },
);

it.for<[number, RegExp]>([
  [400, /fields|details/],
  [401, /token.*BROWSER_POOL_ACCESS_TOKEN/],
  [403, /permission.*plan/],
])('has a hint what to check after a %i', async ([status, hint]) => {
  const { acquire } = await errorsFor({ status, json: BODY });
  expect(acquire?.hint).toMatch(hint);
  expect(acquire?.message).toContain(acquire?.hint);
});

it('has a hint after a 404 about the pool, or about the session that no longer exists', async () => {
  const { acquire, flush, describe, replays, release } = await errorsFor({ status: 404, json: BODY });
  for (const error of [acquire, flush, describe]) expect(error?.hint).toMatch(/no pool pool/);
  for (const error of [replays, release])
    expect(error?.hint).toMatch(/session-1 no longer exists.*inactivity/);
});

it.for([400, 401, 403, 404, 500, 502])('turns a %i without a body into http_%i', async (status) => {
  for (const error of Object.values(await errorsFor({ status }))) {
    expect(error).toMatchObject({ name: 'PoolServiceError', status, code: `http_${status}` });
    for (const fact of ['details', 'inner_error', 'retryAfter', 'requestId'])
      expect(error).not.toHaveProperty(fact);
  }
});

it('shows a short, redacted excerpt of an error page', async () => {
  const page = `<html><h1>Bad   gateway</h1>\n\n${TOKEN} and ?jwt=${JWT} ${'filler '.repeat(10_000)}</html>`;
  const errors = await errorsFor({ status: 502, text: page, headers: { 'content-type': 'text/html' } });
  for (const error of Object.values(errors)) {
    expect(error).toMatchObject({ status: 502, code: 'http_502' });
    expect(error.message).toContain('<h1>Bad gateway</h1>');
    expect(error.message.length).toBeLessThan(600);
  }
});

it('shows no part of a secret at the end of the excerpt', async ({ service, pool }) => {
  for (let padding = 160; padding <= 200; padding++) {
    const text = `${'x'.repeat(padding - 1)} ${TOKEN} is the token that you sent`;
    service.script('flush', { status: 500, text });
    expectNoSecret(await rejection(pool.flush()));
  }
});

it('redacts the token wherever an error response echoes it', async () => {
  const detail = { code: TOKEN, message: `you sent ${TOKEN}` };
  const json = { ...detail, details: [detail], inner_error: detail };
  await errorsFor({ status: 400, json, headers: { 'x-request-id': TOKEN } });
});

it('redacts a jwt whose URL is written with escapes, as JSON encoders do', async ({ service, pool }) => {
  const text = `[{"replay_view_url": "https://x.example.com/?a=1\\u0026jwt=${JWT}\\u0026b=2"}, 5]`;
  service.script('replays', { status: 200, text, headers: { 'content-type': 'application/json' } });
  expectNoSecret(await rejection(pool.replays('session-1')));
});

it('shortens a long error message of the service', async () => {
  const details = Array.from({ length: 5000 }, () => ({ code: 'invalid_input', message: 'y'.repeat(50) }));
  const json = { code: 'z'.repeat(100_000), message: 'x'.repeat(1_000_000), details };
  const { acquire } = await errorsFor({ status: 500, json });
  expect(acquire?.message.length).toBeLessThan(20_000);
  expect(acquire?.code.length).toBeLessThan(2000);
});

it('escapes control characters of an error page, which would control the terminal', async () => {
  const text = '\u001b[31mred\u001b[0m erase \u001b[2J bell \u0007 nul \u0000 end';
  const { acquire } = await errorsFor({ status: 502, text });
  expect(acquire?.message).toContain(String.raw`red erase \u001b[2J bell \u0007 nul \u0000 end`);
});

const HOSTILE = '\u001b[2J \u009b31m \u202e \nforged line \u2066';
/** Node sends no other characters in a header. */
const HOSTILE_HEADER = 'text/\u009b31m';

it.for<[string, Answer]>([
  ['message', { status: 400, json: { code: 'c', message: HOSTILE, details: [{ message: HOSTILE }] } }],
  ['code', { status: 400, json: { code: HOSTILE, message: 'm' } }],
  ['header location', { status: 302, headers: { location: HOSTILE_HEADER } }],
  ['header content-type', { status: 200, text: 'x', headers: { 'content-type': HOSTILE_HEADER } }],
])(
  'does not let a %s control a terminal, forge a line or reverse text',
  async ([, answer], { service, pool }) => {
    service.script('acquire', answer);
    const acquire = await rejection<PoolServiceError>(pool.acquire());
    expect(acquire.message).not.toMatch(/[^\P{Cc}\n]|[\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/u);
    expect(acquire.code).not.toMatch(/\p{Cc}/u);
    expect(acquire.message).not.toMatch(/^forged/m);
  },
);

it.for([
  '[]',
  '"down"',
  'null',
  '5',
  '{"code": "", "message": null, "details": {}, "inner_error": []}',
  '{"code": 5, "message": {}, "details": "x", "inner_error": "y"}',
  '{"code": "bad_req',
])('falls back to the status when the Error body is %s', async (text) => {
  const errors = await errorsFor({ status: 500, text, headers: { 'content-type': 'application/json' } });
  for (const error of Object.values(errors)) {
    expect(error).toMatchObject({ name: 'PoolServiceError', code: 'http_500', status: 500 });
    expect(error).not.toHaveProperty('inner_error');
  }
});

it('keeps details that are objects, and drops others', async () => {
  const json = { code: 'c', message: 'm', details: [null, 'x', { code: 'a' }, { code: 5, message: 'b' }] };
  const { flush } = await errorsFor({ status: 400, json });
  expect(flush?.details).toStrictEqual([{ code: 'a' }, { message: 'b' }]);
});

// Deeper than the stack of a recursive function.
it('accepts a deeply nested Error body', async () => {
  const text = `{"code": "deep", "message": "m", "x": ${'['.repeat(50_000)}${']'.repeat(50_000)}}`;
  const { acquire } = await errorsFor({ status: 500, text });
  expect(acquire).toMatchObject({ name: 'PoolServiceError', status: 500 });
});

const INVALID = [
  '',
  'soon',
  '-5',
  '1e9',
  '5.5',
  '0x10',
  'NaN',
  'in 2099 days',
  'Tue, 31 Dec 2019 23:59:59 GMT',
];

// The clock of the service may be years off, so a date is compared with the date of the response.
it.for<[string, number | undefined]>([
  ['0', 0],
  ['3', 3000],
  ['1000000000', 1e12],
  ['Wed, 01 Jan 2020 00:00:30 GMT', 30_000],
  ...INVALID.map((value): [string, undefined] => [value, undefined]),
])('reads the Retry-After header %j as %s ms', async ([value, expected], { service, pool }) => {
  const headers = { 'retry-after': value, date: 'Wed, 01 Jan 2020 00:00:00 GMT' };
  service.script('flush', { status: 503, headers });
  expect((await rejection<PoolServiceError>(pool.flush())).retryAfter).toBe(expected);
});

it('compares Retry-After with the local clock if the service sends no date', async ({ service, pool }) => {
  service.script('flush', (response) => {
    response.sendDate = false;
    response.writeHead(503, { 'retry-after': new Date(Date.now() + 60_000).toUTCString() }).end();
  });
  const { retryAfter } = await rejection<PoolServiceError>(pool.flush());
  expect(retryAfter).toBeGreaterThan(50_000);
  expect(retryAfter).toBeLessThanOrEqual(60_000);
});
