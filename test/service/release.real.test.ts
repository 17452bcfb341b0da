import { describe, expect, it, vi } from 'vitest';
import { InvalidOptionError } from '../../src/shared/errors.js';
import { ReleaseError } from '../../src/shared/service-errors.js';
import { BrowserPool } from '../../src/service/browser-pool.js';
import { leaseOf, type MarkedLease } from '../../src/service/ownership.js';
import { INTERNALS } from '../../src/service/pool-internals.js';
import { releaseWithRetry, type Releaser } from '../../src/service/release.js';
import type { BrowserSession } from '../../src/service/wire.js';
import { FakeService, session, type Answer } from '../support/fake-service.js';
import { expectNoSecret, hang, rejection, reset } from './support.js';

it.each<[string, Answer]>([
  ['500', { status: 500 }],
  ['503', { status: 503, headers: { 'retry-after': '0' } }],
  ['429', { status: 429 }],
  ['a reset', reset],
])('repeats the request after %s until the service confirms it', async (_what, answer) => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  service.script('release', answer, answer, { status: 204 });
  const outcome = await releaseWithRetry(releaserOf(pool), unmarked('session-1'), {
    reuse: false,
    timeout: 120_000,
  });
  expect(outcome).toBe('destroyed');
  expect(service.of('release').map(({ body }) => body)).toStrictEqual(
    Array.from({ length: 3 }, () => ({ session_id: 'session-1', reuse: false })),
  );
});

it('counts a 404 as released: the session no longer exists', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  service.script('release', { status: 404, json: { code: 'not_found', message: 'gone' } });
  expect(
    await releaseWithRetry(releaserOf(pool), unmarked('session-1'), { reuse: true, timeout: 120_000 }),
  ).toBe('destroyed');
  expect(service.released).toStrictEqual(['session-1']);
});

it.each([400, 401, 403])('fails immediately after a %i, which is permanent', async (status) => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  service.script('release', { status, text: 'no' });
  const error = await rejection(
    releaseWithRetry(releaserOf(pool), unmarked('session-1'), { reuse: true, timeout: 120_000 }),
  );
  expect(error).toBeInstanceOf(ReleaseError);
  expect(error).toMatchObject({
    code: 'ERR_RELEASE',
    sessionId: 'session-1',
    pool: 'pool',
    cause: { status },
  });
  expect(service.released).toStrictEqual(['session-1']);
});

it('fails immediately for arguments that are never sent', { timeout: 60_000 }, async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  const error = await rejection(
    releaseWithRetry(releaserOf(pool), unmarked('a/b'), { reuse: true, timeout: 200_000 }),
  );
  expect(error).toMatchObject({ code: 'ERR_RELEASE', sessionId: 'a/b' });
  expect(error.cause).toBeInstanceOf(InvalidOptionError);
});

it.each<[string, Answer]>([
  ['always refuses', { status: 503, text: 'down' }],
  ['never answers', hang],
])('fails at its deadline if the service %s, and names the session', async (_what, answer) => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  service.script('release', answer);
  const started = performance.now();
  const error = await rejection(
    releaseWithRetry(releaserOf(pool), unmarked('session-1'), { reuse: true, timeout: 500 }),
  );
  expect(performance.now() - started).toBeLessThan(10_000);
  expect(error).toBeInstanceOf(ReleaseError);
  expect(error.message).toMatch(/session-1.*stays leased/s);
  expect(error.cause).toBeInstanceOf(Error);
  expectNoSecret(error);
});

describe('after a release for reuse whose outcome is unknown', () => {
  const OURS = { tags: { 'pooled-browser-lease': 'ours' } };
  const marked = () => leaseOf(session(OURS) as BrowserSession);
  const record = (fields: object): Answer => ({ status: 200, json: session({ ...fields }) });
  const NO_SESSION: Answer = { status: 404, json: { code: 'not_found', message: 'no such path' } };
  const EMPTY: Answer = { status: 200 };
  const UNKNOWN: [string, Answer][] = [
    ['a reset', reset],
    ['502', { status: 502 }],
    ['504', { status: 504 }],
  ];

  async function release(lease: MarkedLease, answers: { release: Answer[]; session: Answer[] }) {
    const service = await FakeService.start();
    await using pool = new BrowserPool('pool', service.options);
    service.script('release', ...answers.release);
    service.script('session', ...answers.session);
    const request = { reuse: true, timeout: 120_000 };
    const released = await releaseWithRetry(releaserOf(pool), lease, request).catch(
      (error: ReleaseError) => error.released,
    );
    await service.close();
    return { released, releases: service.of('release').length, questions: service.of('session').length };
  }

  it.each(UNKNOWN)(
    'repeats it after %s if the session still has the tag of the lease',
    async (_what, answer) => {
      const outcome = await release(marked(), {
        release: [answer, { status: 204 }],
        session: [record(OURS)],
      });
      expect(outcome).toEqual({ released: 'reused', releases: 2, questions: 1 });
    },
  );

  it.each([...UNKNOWN, ['500', { status: 500 }] as [string, Answer]])(
    'does not repeat it after %s if the session belongs to another lease',
    async (_what, answer) => {
      for (const theirs of [{}, { tags: { 'pooled-browser-lease': 'theirs' } }]) {
        const outcome = await release(marked(), { release: [answer], session: [record(theirs)] });
        expect(outcome).toEqual({ released: 'reused', releases: 1, questions: 1 });
      }
    },
  );

  it('repeats a failed ownership check', async () => {
    const answers = {
      release: [reset, { status: 204 }],
      session: [{ status: 503 }, reset, EMPTY, record(OURS)],
    };
    expect(await release(marked(), answers)).toEqual({ released: 'reused', releases: 2, questions: 4 });
  });

  it.each([302, 401, 403])('repeats the ownership check after a %i', async (status) => {
    const refusal = { status, headers: { location: 'https://elsewhere.example/' } };
    const answers = { release: [{ status: 500 }], session: [refusal, refusal, record({})] };
    expect(await release(marked(), answers)).toEqual({ released: 'reused', releases: 1, questions: 3 });
  });

  it.each([404, 405, 501])(
    'trusts a service without the path (%i) that the release failed',
    async (status) => {
      const answers = { release: [{ status: 500 }, { status: 204 }], session: [{ status }] };
      expect(await release(marked(), answers)).toEqual({ released: 'reused', releases: 2, questions: 1 });
    },
  );

  it('checks the ownership before each repetition', async () => {
    const answers = { release: [reset, { status: 503 }, { status: 204 }], session: [record(OURS)] };
    expect(await release(marked(), answers)).toEqual({ released: 'reused', releases: 3, questions: 2 });
  });

  it.each(UNKNOWN)(
    'reports it as unknown after %s if the service shows no session',
    async (_what, answer) => {
      const outcome = await release(marked(), { release: [answer], session: [NO_SESSION] });
      expect(outcome).toEqual({ released: 'unknown', releases: 1, questions: 1 });
    },
  );

  it('reports it as unknown, without a check, if the service showed no mark with the lease', async () => {
    const outcome = await release(unmarked('session-1'), { release: [reset], session: [record(OURS)] });
    expect(outcome).toEqual({ released: 'unknown', releases: 1, questions: 0 });
  });

  it('trusts a service without marks that the release failed', async () => {
    const answers = { release: [{ status: 500 }, { status: 204 }], session: [NO_SESSION] };
    expect(await release(unmarked('session-1'), answers)).toMatchObject({ released: 'reused', releases: 2 });
  });

  it('recognizes the lease by its name at a service that shows no tags', async () => {
    const lease = leaseOf(session({ name: 'ours' }) as BrowserSession);
    const answers = {
      release: [reset, reset, { status: 204 }],
      session: [record({ name: 'ours' }), record({})],
    };
    expect(await release(lease, answers)).toEqual({ released: 'reused', releases: 2, questions: 2 });
  });

  it('repeats it only for a lease that it recognizes, if the mark was never shown', async () => {
    const lease = { ...marked(), isMarkShown: false };
    const ours = await release(lease, { release: [reset, { status: 204 }], session: [record(OURS)] });
    expect(ours).toMatchObject({ released: 'reused', releases: 2 });
    const other = await release(lease, { release: [{ status: 500 }], session: [record({})] });
    expect(other).toMatchObject({ released: 'unknown', releases: 1 });
  });
});

it('repeats a release for destruction without a check: its session id is not reused', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  service.script('release', reset, { status: 204 });
  const request = { reuse: false, timeout: 120_000 };
  expect(await releaseWithRetry(releaserOf(pool), unmarked('session-1'), request)).toBe('destroyed');
  expect(service.of('session')).toEqual([]);
});

it('leaves time for another attempt after an unanswered one', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  let isPending = false;
  const unanswered: Answer = (response) => {
    isPending = true;
    response.once('close', () => (isPending = false));
  };
  service.script('release', unanswered, { status: 204 });
  const request = { reuse: false, timeout: 60_000 };
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
  try {
    const released = releaseWithRetry(releaserOf(pool), unmarked('session-1'), request);
    while (service.released.length < 2) {
      await new Promise((resolve) => setImmediate(resolve));
      if (service.released.length === 0) continue;
      vi.advanceTimersByTime(isPending ? 1000 : 10);
    }
    expect(performance.now()).toBeLessThan(45_000);
    expect(await released).toBe('destroyed');
  } finally {
    vi.useRealTimers();
  }
});

function unmarked(sessionId: string): MarkedLease {
  return { sessionId, mark: undefined, isMarkShown: false };
}

function releaserOf(pool: BrowserPool): Releaser {
  const { idOrName } = pool;
  const { client } = pool[INTERNALS];
  return { idOrName, client, release: (sessionId, options) => pool.release(sessionId, options) };
}
