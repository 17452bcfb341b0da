import { getEventListeners } from 'node:events';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { backoff, delay, startTimer } from '../../src/shared/clock.js';
import { useFakeClock } from '../support/fake-clock.js';

beforeEach(() => useFakeClock());

describe('startTimer', () => {
  it.each([2 ** 31, Number.POSITIVE_INFINITY])('never fires for %s ms, instead of immediately', (ms) => {
    expect(startTimer(ms, vi.fn())).toBeUndefined();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('fires after its delay', () => {
    const onEnd = vi.fn();
    startTimer(100, onEnd);
    vi.advanceTimersByTime(99);
    expect(onEnd).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(onEnd).toHaveBeenCalledOnce();
  });
});

describe('delay', () => {
  it.each<[string, (parts: { abort: () => void; wake: () => void }) => void, unknown]>([
    ['resolves after its time', () => vi.advanceTimersByTime(100), 'resolved'],
    ['resolves when it is woken', ({ wake }) => wake(), 'resolved'],
    ['rejects with the reason of its signal', ({ abort }) => abort(), 'mine'],
  ])('%s, and leaves nothing behind', async (_what, end, expected) => {
    const caller = new AbortController();
    const wakers = new Set<() => void>();
    const wake = (resolve: () => void) => {
      wakers.add(resolve);
      return () => wakers.delete(resolve);
    };
    const waiting = delay(100, caller.signal, wake).then(
      () => 'resolved',
      (error: unknown) => error,
    );
    vi.advanceTimersByTime(99);
    expect([wakers.size, vi.getTimerCount()]).toEqual([1, 1]);
    end({ abort: () => caller.abort('mine'), wake: () => [...wakers][0]!() });
    expect(await waiting).toBe(expected);
    expect([wakers.size, vi.getTimerCount()]).toEqual([0, 0]);
    expect(getEventListeners(caller.signal, 'abort')).toEqual([]);
  });

  it('does not begin after an abort', async () => {
    await expect(delay(100, AbortSignal.abort('mine'))).rejects.toBe('mine');
    expect(vi.getTimerCount()).toBe(0);
  });
});

it('makes pauses that grow by their factor up to a maximum, with a random factor from 1 to 2', () => {
  const retry = { factor: 3, minTimeout: 100, maxTimeout: 2000, randomize: false };
  expect([1, 2, 3, 4, 1000].map((failures) => backoff(retry, failures))).toEqual([100, 300, 900, 2000, 2000]);
  for (const random of [0, 0.5, 0.999]) {
    vi.spyOn(Math, 'random').mockReturnValue(random);
    expect(backoff({ ...retry, randomize: true }, 2)).toBeCloseTo(300 * (1 + random));
  }
});
