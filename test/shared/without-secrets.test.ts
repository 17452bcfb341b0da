import { inspect } from 'node:util';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { PoolClosedError } from '../../src/shared/service-errors.js';
import { withoutSecrets } from '../../src/shared/errors.js';
import { hideParameters } from '../../src/shared/redact.js';
import { FakeService, JWT, TOKEN } from '../support/fake-service.js';
import { expectNoSecrets } from '../support/collected.js';

// As a pool does for its service.
hideParameters(['jwt']);

const URL_WITH_JWT = `wss://h.example.com/?jwt=${JWT}`;

function clean(value: unknown): Error & { code?: string } {
  const copy = withoutSecrets(value) as Error;
  expectNoSecrets(copy);
  return copy;
}

it('keeps only name, message, code and stack, without secrets', () => {
  const error = Object.assign(new TypeError(`no route to ${URL_WITH_JWT}`), {
    code: 'ECONNRESET',
    url: URL_WITH_JWT,
    headers: { authorization: `Bearer ${TOKEN}` },
    [Symbol('socket')]: { url: URL_WITH_JWT },
  });
  const copy = clean(error);
  // The original is unchanged.
  expect(error.message).toContain(JWT);
  expect(copy).toBeInstanceOf(Error);
  expect(copy).toMatchObject({
    name: 'TypeError',
    message: 'no route to wss://h.example.com/?jwt=[redacted]',
    code: 'ECONNRESET',
  });
  expect(copy.stack).toContain('without-secrets.test.ts');
  expect(copy).not.toHaveProperty('url');
  expect(Object.getOwnPropertySymbols(copy)).toStrictEqual([]);
});

it('copies the chain of causes at any depth, and ends for a circular one', () => {
  const chain = new Error(`top ${URL_WITH_JWT}`, {
    cause: new Error(`middle ${URL_WITH_JWT}`, { cause: `bottom ${URL_WITH_JWT}` }),
  });
  const copy = clean(chain);
  expect((copy.cause as Error).message).toBe('middle wss://h.example.com/?jwt=[redacted]');
  expect((copy.cause as Error).cause).toBe('bottom wss://h.example.com/?jwt=[redacted]');
  const error = new Error(URL_WITH_JWT);
  error.cause = new Error('other', { cause: error });
  let depth = 0;
  for (let link: unknown = clean(error); link instanceof Error; link = link.cause) depth++;
  expect(depth).toBeLessThan(20);
});

it('keeps an error of this library unchanged, anywhere in the chain', () => {
  const own = new PoolClosedError();
  expect(withoutSecrets(own)).toBe(own);
  expect(clean(new Error('top', { cause: own })).cause).toBe(own);
});

it('turns the error event of a real WebSocket into an error without its socket and URL', async () => {
  await using service = await FakeService.start();
  const socket = new WebSocket(`${service.baseUrl.replace('http', 'ws')}/cdp?jwt=${JWT}`);
  const event = await new Promise<unknown>((resolve) => (socket.onerror = resolve));
  expect(inspect(event, { depth: 10, showHidden: true })).toContain(JWT);
  const copy = clean(event);
  expect(copy).toBeInstanceOf(Error);
  expect(copy.message).toMatch(/500/);
  expect(copy.cause).toBeInstanceOf(Error);
});

it('copies an event without a message, and a DOMException', () => {
  expect(clean({ type: 'error', target: { url: URL_WITH_JWT } })).toMatchObject({ message: 'no message' });
  const copy = clean(new DOMException(`aborted ${URL_WITH_JWT}`, 'AbortError'));
  expect(copy).toMatchObject({ name: 'AbortError', message: expect.stringContaining('aborted') });
});

it.each([
  ['an array', [URL_WITH_JWT, { deep: URL_WITH_JWT }]],
  ['a URL', new URL(URL_WITH_JWT)],
  ['a string', URL_WITH_JWT],
  ['an AggregateError', new AggregateError([new Error(URL_WITH_JWT)], URL_WITH_JWT)],
  ['an error with a name', Object.assign(new Error('m'), { name: URL_WITH_JWT, code: URL_WITH_JWT })],
])('shows no secret of a thrown value: %s', (_what, value) => {
  clean(value);
});

it('returns a thrown value that is no object unchanged', () => {
  for (const value of [undefined, null, 0, false]) expect(withoutSecrets(value)).toBe(value);
});
