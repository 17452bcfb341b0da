import { expect, it } from 'vitest';
import { InvalidOptionError } from '../../src/shared/errors.js';
import { ReleaseError } from '../../src/shared/service-errors.js';
import { BrowserPool } from '../../src/service/browser-pool.js';
import { releaseWithRetry } from '../../src/service/release.js';
import { FakeService, type Answer } from '../support/fake-service.js';
import { expectNoSecret, hang, rejection, reset } from './support.js';

it.each<[string, Answer]>([
  ['500', { status: 500 }],
  ['503', { status: 503, headers: { 'retry-after': '0' } }],
  ['429', { status: 429 }],
  ['a reset', reset],
])('tries again after %s until the service confirms', async (_what, answer) => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  service.script('release', answer, answer, { status: 204 });
  const outcome = await releaseWithRetry(pool, 'session-1', { reuse: false, timeout: 10_000 });
  expect(outcome).toBe('released');
  expect(service.of('release').map(({ body }) => body)).toStrictEqual(
    Array.from({ length: 3 }, () => ({ session_id: 'session-1', reuse: false })),
  );
});

it('takes a 404 for a session that is gone already', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  service.script('release', { status: 404, json: { code: 'not_found', message: 'gone' } });
  expect(await releaseWithRetry(pool, 'session-1', { reuse: true, timeout: 10_000 })).toBe('gone');
  expect(service.released).toStrictEqual(['session-1']);
});

it.each([400, 401, 403])('gives up at once after a %i, which no later try would change', async (status) => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  service.script('release', { status, text: 'no' });
  const error = await rejection(releaseWithRetry(pool, 'session-1', { reuse: true, timeout: 10_000 }));
  expect(error).toBeInstanceOf(ReleaseError);
  expect(error).toMatchObject({
    code: 'ERR_RELEASE',
    sessionId: 'session-1',
    pool: 'pool',
    cause: { status },
  });
  expect(service.released).toStrictEqual(['session-1']);
});

it('gives up at once on what it would never send', { timeout: 3000 }, async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  const error = await rejection(releaseWithRetry(pool, 'a/b', { reuse: true, timeout: 10_000 }));
  expect(error).toMatchObject({ code: 'ERR_RELEASE', sessionId: 'a/b' });
  expect(error.cause).toBeInstanceOf(InvalidOptionError);
});

it.each<[string, Answer]>([
  ['refuses to the end', { status: 503, text: 'down' }],
  ['never answers', hang],
])('gives up at its own deadline when the service %s, and names the session', async (_what, answer) => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  service.script('release', answer);
  const started = performance.now();
  const error = await rejection(releaseWithRetry(pool, 'session-1', { reuse: true, timeout: 500 }));
  expect(performance.now() - started).toBeLessThan(10_000);
  expect(error).toBeInstanceOf(ReleaseError);
  expect(error.message).toMatch(/session-1.*stays leased/);
  expect(error.cause).toBeInstanceOf(Error);
  expectNoSecret(error);
});
