import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Lifetime } from '../../../src/features/lifetime/lifetime.js';
import type { LifetimeSettings } from '../../../src/features/lifetime/options.js';
import {
  attachBrowser,
  InvalidOptionError,
  isLeaseExpiredError,
  LeaseExpiredError,
  LeaseOverError,
  runOf,
  type LeaseOptions,
} from '../../../src/index.js';
import type { FeatureContext } from '../../../src/lease/feature.js';
import { asJson } from '../../pool/support.js';
import { useFakeClock, useJumpingClock } from '../../support/fake-clock.js';
import { PlayedLease } from '../../support/played-lease.js';

const MINUTE = 60_000;
const never = () => new Promise<never>(() => {});

/** A lease of the feature alone, with the fake clock. */
function begin(settings: LifetimeSettings, saved?: unknown) {
  const events: unknown[] = [];
  const lifetime = new Lifetime(settings);
  const abort = new AbortController();
  const abandoned = new AbortController();
  const context = {
    sessionId: 'session-1',
    service: { pool: 'test' },
    signal: abort.signal,
    abandoned: abandoned.signal,
    emit: (event: object) => events.push(event),
  } as unknown as FeatureContext;
  const over = lifetime.leased(context, saved);
  over?.addEventListener('abort', () => abort.abort(over.reason));
  return { lifetime, events, abandoned, signal: abort.signal, extend: lifetime.facts.extend };
}

const expiring = (remaining: number) => ({ type: 'lease-expiring', sessionId: 'session-1', remaining });

describe('the time of a lease', () => {
  it('ends after lifetime, and an event comes one minute before', () => {
    useFakeClock();
    const { events, signal } = begin({ lifetime: 10 * MINUTE });
    vi.advanceTimersByTime(9 * MINUTE - 1);
    expect(events).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(events).toEqual([expiring(MINUTE)]);
    vi.advanceTimersByTime(MINUTE - 1);
    expect(signal.aborted).toBe(false);
    vi.advanceTimersByTime(1);
    expect(signal.reason).toBeInstanceOf(LeaseExpiredError);
    expect(events).toHaveLength(1);
  });

  it.each([
    [MINUTE, MINUTE / 2],
    [1000, 500],
  ])('of %d ms has its event at half of it', (lifetime, remaining) => {
    useFakeClock();
    const { events } = begin({ lifetime });
    vi.advanceTimersByTime(lifetime - remaining);
    expect(events).toEqual([expiring(remaining)]);
  });

  it('begins again with an extension, and so does the event', () => {
    useFakeClock();
    const { events, signal, extend } = begin({ lifetime: 10 * MINUTE });
    vi.advanceTimersByTime(9 * MINUTE + 1000);
    expect(extend(5 * MINUTE)).toBe(6 * MINUTE - 1000);
    vi.advanceTimersByTime(5 * MINUTE - 1000);
    expect(events).toEqual([expiring(MINUTE), expiring(MINUTE)]);
    expect(signal.aborted).toBe(false);
    vi.advanceTimersByTime(MINUTE);
    expect(signal.reason).toMatchObject({ lifetime: 15 * MINUTE });
  });

  it.each([
    [undefined, 20],
    [12, 12],
    [10, 10],
  ])('is extended to at most maxLifetime (%s), by default twice lifetime', (given, most) => {
    useFakeClock();
    const maxLifetime = given === undefined ? undefined : given * MINUTE;
    const { extend, signal } = begin({ lifetime: 10 * MINUTE, maxLifetime });
    vi.advanceTimersByTime(MINUTE);
    expect([extend(60 * MINUTE), extend(1)]).toEqual([(most - 1) * MINUTE, (most - 1) * MINUTE]);
    vi.advanceTimersByTime((most - 1) * MINUTE);
    expect(signal.reason).toBeInstanceOf(LeaseExpiredError);
  });

  it('may be longer than a timer can wait', () => {
    useFakeClock();
    const day = 24 * 60 * MINUTE;
    const { signal } = begin({ lifetime: 60 * day });
    vi.advanceTimersByTime(60 * day - 1);
    expect(signal.aborted).toBe(false);
    vi.advanceTimersByTime(1);
    expect(signal.aborted).toBe(true);
  });

  it('ends with the browser: one that was abandoned aborts nothing', () => {
    useFakeClock();
    const { abandoned, signal, events } = begin({ lifetime: 1000 });
    abandoned.abort();
    vi.advanceTimersByTime(5000);
    expect([signal.aborted, events]).toEqual([false, []]);
  });

  it('goes on in another process, which can only shorten it', async () => {
    useFakeClock();
    const first = begin({ lifetime: 10 * MINUTE });
    vi.advanceTimersByTime(2 * MINUTE);
    const saved: unknown = asJson((await first.lifetime.finish())!.saved);
    vi.advanceTimersByTime(3 * MINUTE);
    const remainings = [{}, { lifetime: 60 * MINUTE }, { lifetime: MINUTE }].map(
      (own) => begin({ lifetime: Infinity, ...own }, saved).lifetime.remaining,
    );
    expect(remainings).toEqual([5 * MINUTE, 5 * MINUTE, MINUTE]);
    expect(begin({ lifetime: Infinity }, saved).extend(60 * MINUTE)).toBe(15 * MINUTE);
  });

  it('goes on in another process with a maxLifetime of Infinity', async () => {
    const first = begin({ lifetime: MINUTE, maxLifetime: Infinity });
    const saved: unknown = asJson((await first.lifetime.finish())!.saved);
    const { lifetime, extend } = begin({ lifetime: Infinity }, saved);
    expect(lifetime.remaining).toBeLessThanOrEqual(MINUTE);
    expect(extend(100 * MINUTE)).toBeGreaterThan(99 * MINUTE);
    await Promise.all([first.lifetime.stop(), lifetime.stop()]);
  });

  it('goes on with what was left if the clock of the other machine is behind', () => {
    useFakeClock();
    const saved = { age: 1000, lifetime: 5000, maxLifetime: 5000, savedAt: Date.now() + 60 * MINUTE };
    expect(begin({ lifetime: Infinity }, saved).lifetime.remaining).toBe(4000);
  });

  it.each([undefined, null, 'text', {}, { age: 'old', lifetime: 1, maxLifetime: 1, savedAt: 1 }])(
    'has no end if another process sent %j',
    (saved) => expect(begin({ lifetime: Infinity }, saved).lifetime.remaining).toBeUndefined(),
  );
});

describe('withPooledBrowser with lifetime', () => {
  it('ends the callback with LeaseExpiredError, and destroys the browser', async () => {
    const jump = useJumpingClock();
    await using played = await PlayedLease.start();
    let reason: unknown;
    const { error, run } = await played.run(
      ({ signal }) => {
        signal.addEventListener('abort', () => (reason = signal.reason));
        jump(9 * MINUTE);
        jump(MINUTE);
        return never();
      },
      { lifetime: 10 * MINUTE },
    );
    expect(error).toBeInstanceOf(LeaseExpiredError);
    expect(isLeaseExpiredError(error)).toBe(true);
    expect(error).toBe(reason);
    expect(error).toMatchObject({ pool: 'test', sessionId: 'session-1', lifetime: 10 * MINUTE });
    expect(run).toMatchObject({ released: 'destroyed' });
    expect(played.releases).toHaveLength(1);
    expect(played.told('lease-expiring')).toMatchObject([{ sessionId: 'session-1', remaining: MINUTE }]);
  });

  it('ends the wait for a connection', async () => {
    await using played = await PlayedLease.start({ connect: never });
    const { error, run } = await played.run(undefined, { lifetime: 100 });
    expect(error).toBeInstanceOf(LeaseExpiredError);
    expect(run).toMatchObject({ released: 'destroyed' });
    expect(played.service.of('acquire')).toHaveLength(1);
  });

  it('never cuts a release that has begun', async () => {
    const jump = useJumpingClock();
    await using played = await PlayedLease.start({ cleanup: async () => jump(10 * MINUTE) });
    const { value, run } = await played.run(undefined, { lifetime: MINUTE });
    expect(value).toBe('value');
    expect(run).toMatchObject({ released: 'reused', cleanupErrors: [] });
    expect(played.told('lease-expiring')).toEqual([]);
  });

  it('gives the callback extend, also without its object', async () => {
    const jump = useJumpingClock();
    await using played = await PlayedLease.start();
    const { value } = await played.run(
      ({ extend, signal }) => {
        const remaining = extend(10 * MINUTE);
        jump(19 * MINUTE);
        return [remaining, signal.aborted];
      },
      { lifetime: 10 * MINUTE },
    );
    expect(value).toEqual([20 * MINUTE, false]);
  });

  it('can be extended by a listener of lease-expiring', async () => {
    const jump = useJumpingClock();
    await using played = await PlayedLease.start();
    const held = await played.lease({
      lifetime: 10 * MINUTE,
      onEvent: ({ type }) => void (type === 'lease-expiring' && held.extend(5 * MINUTE)),
    });
    jump(9 * MINUTE);
    jump(2 * MINUTE);
    expect(held.signal.aborted).toBe(false);
    expect(await held.release()).toMatchObject({ released: 'reused' });
  });
});

describe('leaseBrowser with lifetime', () => {
  it('releases the browser at the end, though nobody calls release', async () => {
    const jump = useJumpingClock();
    await using played = await PlayedLease.start();
    const held = await played.lease({ lifetime: MINUTE });
    jump(MINUTE);
    expect(held.signal.reason).toBeInstanceOf(LeaseExpiredError);
    await expect.poll(() => played.releases).toHaveLength(1);
    expect(() => held.extend(1)).toThrow(LeaseExpiredError);
    await expect(held.use(() => 1)).rejects.toThrow(/reached its lifetime/);
    expect(await held.release()).toMatchObject({ released: 'destroyed' });
    expect(played.releases).toHaveLength(1);
  });

  it('can not be extended after the release', async () => {
    await using played = await PlayedLease.start();
    const held = await played.lease({ lifetime: 10 * MINUTE });
    await held.release();
    expect(() => held.extend(1)).toThrow(LeaseOverError);
  });

  it('can not be extended without the option', async () => {
    await using played = await PlayedLease.start();
    await using held = await played.lease();
    expect(() => held.extend(1000)).toThrow(InvalidOptionError);
    expect(() => held.extend(1000)).toThrow(/without the option lifetime/);
  });

  it.each([0, -1, Number.NaN, '5m'])('refuses to extend by %j', async (ms) => {
    await using played = await PlayedLease.start();
    await using held = await played.lease({ lifetime: 10 * MINUTE });
    expect(() => held.extend(ms as number)).toThrow(/extend must be a number of milliseconds above 0/);
  });
});

describe('a detached lease with lifetime', () => {
  it('is continued with the rest of its time, and released at its end', async () => {
    const jump = useJumpingClock();
    await using played = await PlayedLease.start();
    const { pool, connector } = played;
    const lifetimes = { lifetime: 10 * MINUTE, maxLifetime: 10 * MINUTE };
    const detached = await (await played.lease(lifetimes)).detach();
    const attached = await attachBrowser(detached, { pool, connector, lifetime: 60 * MINUTE });
    expect(attached.extend(60 * MINUTE)).toBeLessThanOrEqual(10 * MINUTE);
    expect(played.releases).toHaveLength(0);
    jump(10 * MINUTE);
    await expect.poll(() => played.releases).toHaveLength(1);
    expect(attached.signal.reason).toBeInstanceOf(LeaseExpiredError);
  });

  it('is released by the attachment that finds its time over', async () => {
    await using played = await PlayedLease.start();
    const { pool, connector } = played;
    const detached = await (await played.lease({ lifetime: 10 * MINUTE })).detach();
    const now = Date.now();
    vi.useFakeTimers({ toFake: ['Date'], now: now + 11 * MINUTE });
    onTestFinished(() => void vi.useRealTimers());
    const error: unknown = await attachBrowser(detached, { pool, connector }).catch(
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(LeaseExpiredError);
    expect(runOf(error)).toMatchObject({ released: 'destroyed' });
    expect(played.releases).toHaveLength(1);
  });
});

it.each([
  [10 * MINUTE, /Z\/600000$/],
  [undefined, /Z$/],
])(
  'the tag with the owner of a lease has its lifetime (%s), for the command leases',
  async (lifetime, mark) => {
    await using played = await PlayedLease.start();
    await (await played.lease({ lifetime })).release();
    const { tags } = played.service.of('acquire')[0]!.body as { tags: Record<string, string> };
    expect(tags['pooled-browser-owner']).toMatch(mark);
  },
);

it.each<[LeaseOptions, RegExp]>([
  [{ lifetime: 0 }, /lifetime must be a number of milliseconds above 0/],
  [{ lifetime: '10m' as never }, /lifetime must be a number of milliseconds above 0/],
  [{ maxLifetime: 5 }, /needs the option lifetime/],
  [{ lifetime: 10, maxLifetime: 5 }, /at least lifetime, which is 10 ms, not 5/],
])('%j is refused before anything is sent', async (options, message) => {
  await using played = await PlayedLease.start();
  await expect(played.lease(options)).rejects.toThrow(message);
  expect(played.service.of('acquire')).toHaveLength(0);
});
