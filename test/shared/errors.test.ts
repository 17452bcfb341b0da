import { beforeAll, expect, it } from 'vitest';
import * as errors from '../../src/index.js';
import { JWT, TOKEN, UNREACHABLE } from '../support/fake-service.js';
import { expectNoSecrets } from '../support/collected.js';
import { asJson } from '../pool/support.js';

// A pool hides the secret parameters of its service.
beforeAll(() => new errors.BrowserPool('pool', { baseUrl: UNREACHABLE, token: TOKEN }).close());

const URL_WITH_JWT = `wss://h.example.com/?jwt=${JWT}`;
const FACTS = { pool: 'pool', sessionId: 's-1', attempts: 2, elapsed: 10, requestId: 'req-1' };

/** One error of each class, with its code. */
const ALL: [errors.PooledBrowserError, string][] = [
  [new errors.AcquireTimeoutError('m', { ...FACTS }), 'ERR_ACQUIRE_TIMEOUT'],
  [new errors.BrowserLostError('m', 'dropped', FACTS), 'ERR_BROWSER_LOST'],
  [new errors.BrowserNotFoundError('m'), 'ERR_BROWSER_NOT_FOUND'],
  [new errors.CallbackTimeoutError(5, FACTS), 'ERR_CALLBACK_TIMEOUT'],
  [new errors.ConnectError('m', { ...FACTS, status: 403 }), 'ERR_CONNECT'],
  [new errors.LeaseExpiredError(5, FACTS), 'ERR_LEASE_EXPIRED'],
  [new errors.InvalidOptionError('option', 'm', FACTS), 'ERR_INVALID_OPTION'],
  [new errors.LocalPoolError('m'), 'ERR_LOCAL_POOL'],
  [new errors.MissingLibraryError('lib', FACTS), 'ERR_MISSING_LIBRARY'],
  [new errors.PoolClosedError(FACTS), 'ERR_POOL_CLOSED'],
  [new errors.PoolConnectionError('m', 'ERR_POOL_NO_RESPONSE', FACTS), 'ERR_POOL_NO_RESPONSE'],
  [new errors.PoolResponseError('m', 200, FACTS), 'ERR_POOL_RESPONSE'],
  [new errors.PoolServiceError({ status: 400, code: 'bad_request', message: 'm' }, FACTS), 'bad_request'],
  [new errors.ReleaseError('m', 'unknown', { ...FACTS }), 'ERR_RELEASE'],
  [new errors.CleanupError('m', FACTS), 'ERR_CLEANUP'],
  [new errors.LeaseOverError('m', FACTS), 'ERR_LEASE_OVER'],
  [new errors.CheckpointError('m', FACTS), 'ERR_CHECKPOINT'],
  [new errors.TaskTimeoutError(5, FACTS), 'ERR_TASK_TIMEOUT'],
  [new errors.TaskResultError('m', FACTS), 'ERR_TASK_RESULT'],
  [new errors.TooManyFailuresError(5, FACTS), 'ERR_TOO_MANY_FAILURES'],
  [new errors.LeaseNameTakenError('m', 'name', FACTS), 'ERR_LEASE_NAME_TAKEN'],
  [new errors.ConnectionDroppedError(FACTS), 'ERR_CONNECTION_DROPPED'],
  [new errors.ReplayNotReadyError('m', FACTS), 'ERR_REPLAY_NOT_READY'],
];

it.each(ALL.map(([error, code]) => [error.name, error, code] as const))(
  '%s extends PooledBrowserError, and shows its name, its stable code and its facts in JSON',
  (_name, error, code) => {
    expect(error).toBeInstanceOf(Error);
    expect(error).toBeInstanceOf(errors.PooledBrowserError);
    expect(errors.isPooledBrowserError(error)).toBe(true);
    expect(error.name).toBe(error.constructor.name);
    expect(errors).toHaveProperty(error.name, error.constructor);
    expect(error.code).toBe(code);
    expect(error.stack).toContain('errors.test.ts');
    const json = asJson(error);
    expect(json).toMatchObject({ name: error.name, code });
    if (error.pool) expect(json).toMatchObject(FACTS);
  },
);

it('omits unknown facts, and keeps a cause of this library unchanged', () => {
  const error = new errors.PooledBrowserError('m', { pool: undefined, attempts: 0 });
  for (const fact of ['pool', 'sessionId', 'cause']) expect(error).not.toHaveProperty(fact);
  expect(error.attempts).toBe(0);
  const cause = new errors.PoolClosedError();
  expect(new errors.PooledBrowserError('m', { cause }).cause).toBe(cause);
  expect(new errors.ConnectError('m', { status: 403 }).status).toBe(403);
  expect(new errors.ConnectError('m')).not.toHaveProperty('status');
});

it('recognizes the errors of another copy of this library', () => {
  class FromAnotherCopy extends Error {}
  Object.defineProperty(FromAnotherCopy.prototype, Symbol.for('pooled-browser.error'), { value: true });
  expect(errors.isPooledBrowserError(new FromAnotherCopy())).toBe(true);
});

it.each([
  undefined,
  null,
  'text',
  new Error('plain'),
  { name: 'PooledBrowserError', code: 'x' },
  { [Symbol.for('pooled-browser.error')]: true },
])('does not recognize %o as an error of this library', (value) => {
  expect(errors.isPooledBrowserError(value)).toBe(false);
  expect(errors.isAcquireTimeoutError(value)).toBe(false);
  expect(errors.isBrowserLostError(value)).toBe(false);
  expect(errors.isPoolServiceError(value)).toBe(false);
});

it('has guards that return true for their own class only', () => {
  const guards = {
    AcquireTimeoutError: errors.isAcquireTimeoutError,
    BrowserLostError: errors.isBrowserLostError,
    PoolServiceError: errors.isPoolServiceError,
  };
  for (const [name, guard] of Object.entries(guards)) {
    expect(ALL.filter(([error]) => guard(error)).map(([error]) => error.name)).toStrictEqual([name]);
  }
});

it('has no secret in any field, whatever its cause', () => {
  const text = `${TOKEN} ${URL_WITH_JWT} Bearer ${JWT}`;
  // The client does the same with each token. A jwt is recognized by its form.
  const known = text.replaceAll(TOKEN, `Bearer ${TOKEN}`);
  const detail = { code: known, message: known };
  const cause = Object.assign(new Error(known), { url: URL_WITH_JWT, headers: { authorization: TOKEN } });
  const facts = { pool: 'pool', sessionId: 's-1', requestId: known, cause };
  const fault = { status: 400, code: known, message: known, hint: known };
  for (const error of [
    new errors.PooledBrowserError(known, facts),
    new errors.PoolServiceError({ ...fault, details: [detail], inner_error: detail }, facts),
    new errors.InvalidOptionError('option', known, facts),
    new errors.BrowserLostError(known, 'dropped', facts),
  ]) {
    expectNoSecrets(error);
  }
});

it.each([
  [0.4, '0 ms'],
  [250, '250 ms'],
  [999.8088470000002, '1 s'],
  [30_000, '30 s'],
  [65_432.1, '65.4 s'],
])('shows %d ms as %s in messages', (milliseconds, text) => {
  expect(new errors.CallbackTimeoutError(milliseconds, {}).message).toContain(` ${text}`);
});
