import { expect, it as plainIt } from 'vitest';
import { type HttpResponse, readJson, retryAfter, serviceError } from '../../src/net/response.js';
import type { BrowserPool } from '../../src/pool/browser-pool.js';
import { hideParameters, hideSecret } from '../../src/shared/redact.js';
import { isPoolServiceError, PoolServiceError } from '../../src/shared/service-errors.js';
import { it, rejection } from '../pool/support.js';
import { expectNoSecrets } from '../support/collected.js';
import { JWT, type Route, TOKEN } from '../support/fake-service.js';

// As a pool does for its service.
hideParameters(['jwt']);
hideSecret(TOKEN);

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

/** The error of a response with this body: a text, or JSON. */
function errorOf(status: number, body: unknown, headers: HttpResponse['headers'] = {}, sessionId?: string) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const error = serviceError({ status, headers, body: text }, { pool: 'pool', sessionId });
  expectNoSecrets(error);
  return error;
}

plainIt.each([
  [400, undefined, /fields|details/],
  [401, undefined, /token.*BROWSER_POOL_ACCESS_TOKEN/],
  [403, undefined, /permission.*plan/],
  [404, undefined, /no pool pool/],
  [404, 'session-1', /session-1 no longer exists.*inactivity/],
])('has a hint what to check after a %i for the session %s', (status, sessionId, hint) => {
  const error = errorOf(status, BODY, {}, sessionId);
  expect(error.hint).toMatch(hint);
  expect(error.message).toContain(error.hint);
});

plainIt('names a response without a body by its status', () => {
  const error = errorOf(502, '');
  expect(error).toMatchObject({ name: 'PoolServiceError', status: 502, code: 'http_502' });
  for (const fact of ['details', 'inner_error', 'retryAfter', 'requestId'])
    expect(error).not.toHaveProperty(fact);
});

plainIt('shows a short, redacted excerpt of an error page', () => {
  const page = `<html><h1>Bad   gateway</h1>\n\n${TOKEN} and ?jwt=${JWT} ${'filler '.repeat(10_000)}</html>`;
  const { message } = errorOf(502, page, { 'content-type': 'text/html' });
  expect(message).toContain('<h1>Bad gateway</h1>');
  expect(message.length).toBeLessThan(600);
});

plainIt('redacts the token wherever an error response echoes it', () => {
  const detail = { code: TOKEN, message: `you sent ${TOKEN}` };
  errorOf(400, { ...detail, details: [detail], inner_error: detail }, { 'x-request-id': TOKEN });
});

plainIt('shortens a long error message of the service', () => {
  const details = Array.from({ length: 5000 }, () => ({ code: 'invalid_input', message: 'y'.repeat(50) }));
  const error = errorOf(500, { code: 'z'.repeat(100_000), message: 'x'.repeat(1_000_000), details });
  expect(error.message.length).toBeLessThan(20_000);
  expect(error.code.length).toBeLessThan(2000);
});

const HOSTILE = '\u001b[2J \u009b31m \u202e \nforged line \u2066';
const PAGE = { status: 200, headers: { 'content-type': HOSTILE }, body: 'x' };

plainIt.each<[string, () => unknown]>([
  ['message', () => errorOf(400, { code: 'c', message: HOSTILE, details: [{ message: HOSTILE }] })],
  ['code', () => errorOf(400, { code: HOSTILE, message: 'm' })],
  ['page', () => errorOf(502, HOSTILE)],
  ['header location', () => errorOf(302, '', { location: HOSTILE })],
  ['header content-type', () => readJson(PAGE, {})],
])('does not let a %s control a terminal, forge a line or reverse text', async (_what, fail) => {
  const { message, code } = (await Promise.resolve()
    .then(fail)
    .catch((error: unknown) => error)) as PoolServiceError;
  expect(message).not.toMatch(/[^\P{Cc}\n]|[\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/u);
  expect(code).not.toMatch(/\p{Cc}/u);
  expect(message).not.toMatch(/^forged/m);
});

plainIt.each([
  '[]',
  '"down"',
  'null',
  '5',
  '{"code": "", "message": null, "details": {}, "inner_error": []}',
  '{"code": true, "message": {}, "details": "x", "inner_error": "y"}',
  '{"code": 500, "error": "Internal Server Error"}',
  '{"code": "bad_req',
])('falls back to the status when the Error body is %s', (body) => {
  const error = errorOf(500, body);
  expect(error).toMatchObject({ name: 'PoolServiceError', code: 'http_500', status: 500 });
  expect(error).not.toHaveProperty('inner_error');
});

plainIt('keeps details with a text or a code, and drops others', () => {
  const details = [null, 7, {}, { message: {} }, 'x', { code: 'a' }, { code: 5, message: 'b' }];
  const error = errorOf(400, { code: 'c', message: 'm', details });
  expect(error.details).toStrictEqual([{ message: 'x' }, { code: 'a' }, { code: '5', message: 'b' }]);
});

// Deeper than the stack of a recursive function.
plainIt('accepts a deeply nested Error body', () => {
  const body = `{"code": "deep", "message": "m", "x": ${'['.repeat(50_000)}${']'.repeat(50_000)}}`;
  expect(errorOf(500, body).status).toBe(500);
});

// The clock of the service may be years off, so a date is compared with the date of the response.
plainIt.each<[string, number | undefined]>([
  ['0', 0],
  ['3', 3000],
  ['1000000000', 1e12],
  ['Wed, 01 Jan 2020 00:00:30 GMT', 30_000],
  ...['', 'soon', '-5', '1e9', '5.5', '0x10', 'NaN', 'in 2099 days', 'Tue, 31 Dec 2019 23:59:59 GMT'].map(
    (invalid): [string, undefined] => [invalid, undefined],
  ),
])('reads the Retry-After header %j as %s ms', (value, expected) => {
  expect(retryAfter({ 'retry-after': value, date: 'Wed, 01 Jan 2020 00:00:00 GMT' })).toBe(expected);
});

plainIt.each<[string, number]>([
  ['250', 250],
  ['12.5', 13],
  ['soon', 60_000],
])('prefers the header retry-after-ms %j', (value, expected) => {
  expect(retryAfter({ 'retry-after-ms': value, 'retry-after': '60' })).toBe(expected);
});

plainIt('compares Retry-After with the local clock if the service sends no date', () => {
  const wait = retryAfter({ 'retry-after': new Date(Date.now() + 60_000).toUTCString() });
  expect(wait).toBeGreaterThan(50_000);
  expect(wait).toBeLessThanOrEqual(60_000);
});

/** What people see of an error body: `code`, the text and the further errors. */
interface Shown {
  readonly code: string;
  readonly message: string;
  readonly details?: readonly object[];
}

/** Bodies as the services send them, by the types and the error classes of their packages and by their documents. */
const BODIES: readonly (readonly [service: string, status: number, body: unknown, Shown])[] = [
  [
    'kernel',
    400,
    {
      code: 'invalid_input',
      message: 'The request is not valid',
      details: [{ code: 'too_long', message: 'name is too long' }],
      inner_error: { code: 'schema', message: 'at $.name' },
    },
    {
      code: 'invalid_input',
      message:
        '400 invalid_input: The request is not valid. Details: too_long: name is too long. Check the fields in the details.',
      details: [{ code: 'too_long', message: 'name is too long' }],
    },
  ],
  [
    'Selenium Grid',
    500,
    {
      value: {
        error: 'session not created',
        message: 'Could not start a new session. Unable to create session\nHost info: …',
        stacktrace: 'org.openqa.selenium.SessionNotCreatedException: at …',
      },
    },
    {
      code: 'session not created',
      message:
        '500 session not created: Could not start a new session. Unable to create session Host info: …',
    },
  ],
  [
    'chromedriver',
    404,
    { value: { error: 'invalid session id', message: 'invalid session id' } },
    { code: 'invalid session id', message: '404 invalid session id: invalid session id.' },
  ],
  [
    'anchor',
    401,
    { error: { code: 401, message: 'Invalid API key' } },
    { code: 'http_401', message: '401 http_401: Invalid API key.' },
  ],
  [
    'anchor, with a code',
    400,
    { error: { code: 'INVALID_PROXY', message: 'Proxy is not active' } },
    { code: 'INVALID_PROXY', message: '400 INVALID_PROXY: Proxy is not active.' },
  ],
  [
    'browser-use',
    402,
    { detail: 'Insufficient credits' },
    { code: 'http_402', message: '402 http_402: Insufficient credits.' },
  ],
  [
    'browser-use, a list of wrong fields',
    422,
    {
      detail: [
        {
          loc: ['body', 'timeout'],
          msg: 'Input should be less than or equal to 240',
          type: 'less_than_equal',
        },
        { loc: ['body', 'metadata', 0], msg: 'Field required', type: 'missing' },
      ],
    },
    {
      code: 'http_422',
      message:
        '422 http_422: body.timeout: Input should be less than or equal to 240; body.metadata.0: Field required.',
      details: [
        { code: 'less_than_equal', message: 'body.timeout: Input should be less than or equal to 240' },
        { code: 'missing', message: 'body.metadata.0: Field required' },
      ],
    },
  ],
  [
    'browser-use, an object',
    409,
    { detail: { code: 'profile_locked', message: 'The profile is in use' } },
    { code: 'profile_locked', message: '409 profile_locked: The profile is in use.' },
  ],
  [
    'hyperbrowser',
    401,
    { error: 'Unauthorized' },
    { code: 'http_401', message: '401 http_401: Unauthorized.' },
  ],
  [
    'hyperbrowser, with a code',
    402,
    { message: 'Insufficient credits', code: 'payment_required' },
    { code: 'payment_required', message: '402 payment_required: Insufficient credits.' },
  ],
  [
    'browserbase',
    400,
    { statusCode: 400, error: 'Bad Request', message: 'body/timeout must be >= 60' },
    { code: 'http_400', message: '400 http_400: body/timeout must be >= 60.' },
  ],
  [
    'browserbase, several messages',
    400,
    { statusCode: 400, error: 'Bad Request', message: ['region is unknown', 'timeout is too short'] },
    { code: 'http_400', message: '400 http_400: region is unknown; timeout is too short.' },
  ],
  [
    'steel',
    400,
    {
      statusCode: 400,
      code: 'FST_ERR_VALIDATION',
      error: 'Bad Request',
      message: 'body/timeout must be integer',
    },
    { code: 'FST_ERR_VALIDATION', message: '400 FST_ERR_VALIDATION: body/timeout must be integer.' },
  ],
  [
    'browserless',
    400,
    'Bad or missing authentication.',
    { code: 'http_400', message: '400 http_400: Bad or missing authentication.' },
  ],
  [
    'cloudflare',
    429,
    { success: false, errors: [{ code: 2001, message: 'Rate limit exceeded' }], messages: [], result: null },
    {
      code: 'http_429',
      message: '429 http_429: Rate limit exceeded.',
      details: [{ code: '2001', message: 'Rate limit exceeded' }],
    },
  ],
  [
    'a problem document (RFC 9457)',
    403,
    { type: 'https://errors.test/quota', title: 'Quota', status: 403, detail: 'No browser is left' },
    { code: 'http_403', message: '403 http_403: No browser is left.' },
  ],
  // Neither a wrong type nor an empty part hides the body.
  [
    'a body without words',
    500,
    { error: null, message: {}, detail: [], details: [null, {}, 7] },
    {
      code: 'http_500',
      message: '500 http_500: {"error":null,"message":{},"detail":[],"details":[null,{},7]}.',
      details: [],
    },
  ],
];

plainIt.each(BODIES)(
  '%s: the code, the words and the details of its errors',
  (_service, status, body, shown) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const error = serviceError({ status, headers: {}, body: text }, {});
    expect(error).toMatchObject({
      status,
      ...shown,
      message: expect.stringContaining(shown.message) as string,
    });
    expect(error.details).toEqual(shown.details);
  },
);
