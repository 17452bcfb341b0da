import { expect } from 'vitest';
import type { BrowserPool } from '../../src/service/browser-pool.js';
import { isPoolServiceError, PoolServiceError } from '../../src/shared/service-errors.js';
import { JWT, TOKEN, type Answer, type Route } from '../support/fake-service.js';
import { expectNoSecrets } from '../support/collected.js';
import { it as serviceIt, rejection } from './support.js';

const it = serviceIt.extend<{ refuse: (answer: Answer) => Promise<PoolServiceError> }>({
  /** Returns the error of a request with this answer. */
  refuse: ({ service, pool }, use) =>
    use(async (answer) => {
      service.script('flush', answer);
      const error = await rejection<PoolServiceError>(pool.flush());
      expectNoSecrets(error);
      return error;
    }),
});

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

it.for<[Route, (pool: BrowserPool) => Promise<unknown>]>([
  ['acquire', (pool) => pool.acquire()],
  ['release', (pool) => pool.release('session-1')],
  ['flush', (pool) => pool.flush()],
  ['replays', (pool) => pool.replays('session-1')],
  ['start-replay', (pool) => pool.startReplay('session-1')],
  ['stop-replay', (pool) => pool.stopReplay('session-1', 'r')],
  ['pool', (pool) => pool.describe()],
])(
  'turns the Error body of a response to %s into an error with all its fields',
  async ([route, call], { service, pool }) => {
    const headers = { 'x-request-id': 'req-7', 'retry-after': '3' };
    service.script(route, { status: 429, json: BODY, headers });
    const error = await rejection<PoolServiceError>(call(pool));
    expect(error).toBeInstanceOf(PoolServiceError);
    expect(isPoolServiceError(error)).toBe(true);
    const facts = { status: 429, requestId: 'req-7', retryAfter: 3000, pool: 'pool' };
    const { code, details, inner_error } = BODY;
    expect(error).toMatchObject({ name: 'PoolServiceError', code, details, inner_error, ...facts });
    for (const text of ['429', 'bad_request', BODY.message, 'name is taken', 'only text'])
      expect(error.message).toContain(text);
    expect(error.sessionId).toBe(/replay|release/.test(route) ? 'session-1' : undefined);
    expect(service.requests).toHaveLength(1);
    expectNoSecrets(error);
  },
);

it.for<[number, Route, (pool: BrowserPool) => Promise<unknown>, RegExp]>([
  [400, 'flush', (pool) => pool.flush(), /fields|details/],
  [401, 'flush', (pool) => pool.flush(), /token.*BROWSER_POOL_ACCESS_TOKEN/],
  [403, 'flush', (pool) => pool.flush(), /permission.*plan/],
  [404, 'flush', (pool) => pool.flush(), /no pool pool/],
  [404, 'replays', (pool) => pool.replays('session-1'), /session-1 no longer exists.*inactivity/],
])(
  'has a hint what to check after a %i of the request %s',
  async ([status, route, call, hint], { service, pool }) => {
    service.script(route, { status, json: BODY });
    const error = await rejection<PoolServiceError>(call(pool));
    expect(error.hint).toMatch(hint);
    expect(error.message).toContain(error.hint);
  },
);

it.for([401, 502])('names a %i without a body by its status', async (status, { refuse }) => {
  const error = await refuse({ status });
  expect(error).toMatchObject({ name: 'PoolServiceError', status, code: `http_${status}` });
  for (const fact of ['details', 'inner_error', 'retryAfter', 'requestId'])
    expect(error).not.toHaveProperty(fact);
});

it('shows a short, redacted excerpt of an error page', async ({ refuse }) => {
  const page = `<html><h1>Bad   gateway</h1>\n\n${TOKEN} and ?jwt=${JWT} ${'filler '.repeat(10_000)}</html>`;
  const error = await refuse({ status: 502, text: page, headers: { 'content-type': 'text/html' } });
  expect(error).toMatchObject({ status: 502, code: 'http_502' });
  expect(error.message).toContain('<h1>Bad gateway</h1>');
  expect(error.message.length).toBeLessThan(600);
});

it('redacts the token wherever an error response echoes it', async ({ refuse }) => {
  const detail = { code: TOKEN, message: `you sent ${TOKEN}` };
  const json = { ...detail, details: [detail], inner_error: detail };
  await refuse({ status: 400, json, headers: { 'x-request-id': TOKEN } });
});

it('shortens a long error message of the service', async ({ refuse }) => {
  const details = Array.from({ length: 5000 }, () => ({ code: 'invalid_input', message: 'y'.repeat(50) }));
  const json = { code: 'z'.repeat(100_000), message: 'x'.repeat(1_000_000), details };
  const error = await refuse({ status: 500, json });
  expect(error.message.length).toBeLessThan(20_000);
  expect(error.code.length).toBeLessThan(2000);
});

const HOSTILE = '\u001b[2J \u009b31m \u202e \nforged line \u2066';
/** Node sends no other characters in a header. */
const HOSTILE_HEADER = 'text/\u009b31m';

it.for<[string, Answer]>([
  ['message', { status: 400, json: { code: 'c', message: HOSTILE, details: [{ message: HOSTILE }] } }],
  ['code', { status: 400, json: { code: HOSTILE, message: 'm' } }],
  ['page', { status: 502, text: HOSTILE }],
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
])('falls back to the status when the Error body is %s', async (text, { refuse }) => {
  const error = await refuse({ status: 500, text, headers: { 'content-type': 'application/json' } });
  expect(error).toMatchObject({ name: 'PoolServiceError', code: 'http_500', status: 500 });
  expect(error).not.toHaveProperty('inner_error');
});

it('keeps details that are objects, and drops others', async ({ refuse }) => {
  const json = { code: 'c', message: 'm', details: [null, 'x', { code: 'a' }, { code: 5, message: 'b' }] };
  expect((await refuse({ status: 400, json })).details).toStrictEqual([{ code: 'a' }, { message: 'b' }]);
});

// Deeper than the stack of a recursive function.
it('accepts a deeply nested Error body', async ({ refuse }) => {
  const text = `{"code": "deep", "message": "m", "x": ${'['.repeat(50_000)}${']'.repeat(50_000)}}`;
  expect(await refuse({ status: 500, text })).toMatchObject({ name: 'PoolServiceError', status: 500 });
});

// The clock of the service may be years off, so a date is compared with the date of the response.
it.for<[string, number | undefined]>([
  ['0', 0],
  ['3', 3000],
  ['1000000000', 1e12],
  ['Wed, 01 Jan 2020 00:00:30 GMT', 30_000],
  ...['', 'soon', '-5', '1e9', '5.5', '0x10', 'NaN', 'in 2099 days', 'Tue, 31 Dec 2019 23:59:59 GMT'].map(
    (invalid): [string, undefined] => [invalid, undefined],
  ),
])('reads the Retry-After header %j as %s ms', async ([value, expected], { refuse }) => {
  const headers = { 'retry-after': value, date: 'Wed, 01 Jan 2020 00:00:00 GMT' };
  expect((await refuse({ status: 503, headers })).retryAfter).toBe(expected);
});

it('compares Retry-After with the local clock if the service sends no date', async ({ refuse }) => {
  const { retryAfter } = await refuse((response) => {
    response.sendDate = false;
    response.writeHead(503, { 'retry-after': new Date(Date.now() + 60_000).toUTCString() }).end();
  });
  expect(retryAfter).toBeGreaterThan(50_000);
  expect(retryAfter).toBeLessThanOrEqual(60_000);
});
