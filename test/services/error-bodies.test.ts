import { expect, it } from 'vitest';
import { serviceError } from '../../src/net/response.js';

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

it.each(BODIES)('%s: the code, the words and the details of its errors', (_service, status, body, shown) => {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const error = serviceError({ status, headers: {}, body: text }, {});
  expect(error).toMatchObject({
    status,
    ...shown,
    message: expect.stringContaining(shown.message) as string,
  });
  expect(error.details).toEqual(shown.details);
});
