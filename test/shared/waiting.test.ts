import { getEventListeners, once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { LinkedAbort, raceAbort, raceEnd, raceTimeout, withAbortGrace } from '../../src/shared/abort.js';
import { backoff, delay, startTimer } from '../../src/shared/clock.js';
import { rejection } from '../pool/support.js';
import { useFakeClock, useRealClock } from '../support/fake-clock.js';

const REASON = new Error('enough');
const never = new Promise<never>(() => {});

beforeEach(() => useFakeClock());

function expectNoListener(signal: AbortSignal): void {
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
}

/** A promise with its resolve and reject functions. */
function deferred<T>() {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((...ends) => ([resolve, reject] = ends));
  return { promise, resolve, reject };
}

describe('raceAbort', () => {
  it('settles as the work does if nothing aborts', async () => {
    const onLate = vi.fn();
    const { signal } = new AbortController();
    for (const given of [signal, undefined])
      expect(await raceAbort(Promise.resolve('value'), given, onLate)).toBe('value');
    expect(await rejection(raceAbort(Promise.reject(REASON), signal))).toBe(REASON);
    expect(onLate).not.toHaveBeenCalled();
    expectNoListener(signal);
  });

  it('rejects immediately on abort, and passes the late value to onLate', async () => {
    const { promise, resolve } = deferred<string>();
    const controller = new AbortController();
    const onLate = vi.fn();
    const race = rejection(raceAbort(promise, controller.signal, onLate));
    controller.abort(REASON);
    expect(await race).toBe(REASON);
    expect(onLate).not.toHaveBeenCalled();
    resolve('late');
    await promise;
    expect(onLate.mock.calls).toStrictEqual([['late']]);
    expectNoListener(controller.signal);
  });

  it('rejects for an aborted signal, and ignores work that fails later', async () => {
    const onLate = vi.fn();
    const signal = AbortSignal.abort(REASON);
    expect(await rejection(raceAbort(Promise.resolve('value'), signal, onLate))).toBe(REASON);
    await Promise.resolve();
    expect(onLate.mock.calls).toStrictEqual([['value']]);
    const { promise, reject } = deferred<string>();
    const race = rejection(raceAbort(promise, signal));
    reject(new Error('too late to matter'));
    expect(await race).toBe(REASON);
  });

  it('delivers a value exactly once, whatever the order of the abort and the value', async () => {
    const ticks = [0, 1, 2, 3, 4, 5, 6];
    for (const [abortAfter, resolveAfter] of ticks.flatMap((one) => ticks.map((other) => [one, other]))) {
      const { promise, resolve } = deferred<string>();
      const controller = new AbortController();
      const delivered: string[] = [];
      const deliver = (value: string) => void delivered.push(value);
      const race = raceAbort(promise, controller.signal, deliver).then(deliver, () => {});
      for (const tick of ticks) {
        if (tick === resolveAfter) resolve('value');
        if (tick === abortAfter) controller.abort();
        await Promise.resolve();
      }
      await race;
      await promise;
      expect(delivered, `abort after ${abortAfter} ticks, value after ${resolveAfter}`).toEqual(['value']);
    }
  });
});

describe('raceTimeout', () => {
  it('throws the error of onTimeout after the timeout', async () => {
    const onEnd = vi.fn();
    const race = rejection(
      raceTimeout(
        5000,
        () => never,
        () => REASON,
      ),
    ).finally(onEnd);
    await vi.advanceTimersByTimeAsync(4999);
    expect(onEnd).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(await race).toBe(REASON);
  });

  it('leaves no timer after the work has ended', async () => {
    const race = (work: () => Promise<string>) => raceTimeout(5000, work, () => REASON);
    expect(await race(() => Promise.resolve('value'))).toBe('value');
    await expect(race(() => Promise.reject(new Error('mine')))).rejects.toThrow('mine');
    expect(vi.getTimerCount()).toBe(0);
  });
});

/** Work under the timeout of an HTTP request. */
function underLinkedAbort(timeout: number, work: () => Promise<string>): Promise<string> {
  return raceAbort(work(), new LinkedAbort(undefined, timeout).signal);
}

it.each([
  ['raceTimeout', raceTimeout<string>],
  ['LinkedAbort', underLinkedAbort],
])(
  '%s reads what arrived while the event loop was blocked for longer than the timeout',
  async (_name, run) => {
    useRealClock();
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const [peer] = (await once(server, 'connection')) as [Socket];
    // After a check phase, timers fire before sockets are read.
    await new Promise(setImmediate);
    const work = () => once(client, 'data').then(String);
    const race = run(20, work, () => REASON);
    peer.write('answer');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    expect(await race).toBe('answer');
    peer.destroy();
    client.destroy();
    await once(server.close(), 'close');
  },
);

describe('raceEnd', () => {
  it('settles as the work does, and creates no error for a later end', async () => {
    const onEnd = vi.fn((how: string) => new Error(`ended: ${how}`));
    const { promise: ended, resolve: end } = deferred<string>();
    expect(await raceEnd(Promise.resolve('done'), ended, onEnd)).toBe('done');
    await expect(raceEnd(Promise.reject(new Error('mine')), ended, onEnd)).rejects.toThrow('mine');
    end('closed');
    await ended;
    expect(onEnd).not.toHaveBeenCalled();
  });

  it('fails with the error of an earlier end, whatever the work does later', async () => {
    const onEnd = (how: string) => new Error(`ended: ${how}`);
    const { promise: late, reject } = deferred<never>();
    for (const work of [never, late])
      await expect(raceEnd(work, Promise.resolve('dropped'), onEnd)).rejects.toThrow('ended: dropped');
    reject(new Error('late'));
    await late.catch(() => {});
  });
});

describe('withAbortGrace', () => {
  /** Work that is under way, and the outcome of waiting for it. */
  function wait(signal?: AbortSignal) {
    const { promise, resolve, reject } = deferred<string>();
    const outcome: unknown[] = [];
    void withAbortGrace(signal, promise).then(
      (value) => outcome.push(value),
      (error) => outcome.push({ error }),
    );
    return { resolve, reject, outcome };
  }

  it('has the outcome of the work, with and without a signal', async () => {
    const { signal } = new AbortController();
    for (const given of [undefined, signal]) {
      const [done, failed] = [wait(given), wait(given)];
      done.resolve('value');
      failed.reject('mine');
      await vi.advanceTimersByTimeAsync(0);
      expect([done.outcome, failed.outcome]).toEqual([['value'], [{ error: 'mine' }]]);
    }
    expectNoListener(signal);
  });

  it.each(['meanwhile', 'before'])('rejects with the reason one second after an abort %s', async (when) => {
    const controller = new AbortController();
    if (when === 'before') controller.abort('left');
    const { outcome } = wait(controller.signal);
    controller.abort('left');
    await vi.advanceTimersByTimeAsync(999);
    expect(outcome).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(outcome).toEqual([{ error: 'left' }]);
  });

  it('has the outcome of work that ends within that second, and leaves no timer', async () => {
    const controller = new AbortController();
    const { outcome, reject } = wait(controller.signal);
    controller.abort('left');
    await vi.advanceTimersByTimeAsync(500);
    reject('with the run behind it');
    await vi.advanceTimersByTimeAsync(0);
    expect(outcome).toEqual([{ error: 'with the run behind it' }]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('LinkedAbort', () => {
  it('aborts with its parent, and with the reason of its parent; the parent does not abort with it', () => {
    const parent = new AbortController();
    const linked = new LinkedAbort(parent.signal);
    const other = new LinkedAbort(parent.signal);
    other.abort('mine');
    expect([parent.signal.aborted, linked.signal.aborted]).toEqual([false, false]);
    parent.abort('enough');
    expect(linked).toMatchObject({ timedOut: false, signal: { aborted: true, reason: 'enough' } });
    linked.abort('later');
    expect([linked.signal.reason, other.signal.reason]).toEqual(['enough', 'mine']);
  });

  it('starts aborted if its parent has aborted, and leaves no listener and no timer', () => {
    const signal = AbortSignal.abort('before');
    const linked = new LinkedAbort(signal, 1000);
    expect(linked.signal).toMatchObject({ aborted: true, reason: 'before' });
    linked.dispose();
    expectNoListener(signal);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('aborts after its timeout, and reports it only if nothing else aborted it first', () => {
    const parent = new AbortController();
    const [linked, left] = [new LinkedAbort(undefined, 1000), new LinkedAbort(parent.signal, 1000)];
    vi.advanceTimersByTime(999);
    expect(linked.signal.aborted).toBe(false);
    parent.abort('first');
    // One for the timer, one for the end of that iteration of the event loop.
    vi.advanceTimersByTime(2);
    expect(linked).toMatchObject({ timedOut: true, signal: { reason: { name: 'TimeoutError' } } });
    vi.advanceTimersByTime(2000);
    expect(left).toMatchObject({ timedOut: false, signal: { reason: 'first' } });
  });

  it('leaves no timer, and one listener of all calls on a signal, without a warning', async () => {
    useRealClock();
    const warnings: string[] = [];
    const onWarning = ({ name }: Error) => void warnings.push(name);
    process.on('warning', onWarning);
    useFakeClock({ toFake: ['setTimeout', 'clearTimeout'] });
    const parent = new AbortController();
    const links = Array.from({ length: 20 }, () => new LinkedAbort(parent.signal, 1000));
    expect(getEventListeners(parent.signal, 'abort')).toHaveLength(1);
    await new Promise(setImmediate);
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
    links[0]!.dispose();
    expect(getEventListeners(parent.signal, 'abort')).toHaveLength(1);
    for (const linked of links) linked.dispose();
    expectNoListener(parent.signal);
    expect(vi.getTimerCount()).toBe(0);
    parent.abort('after');
    expect(links[0]?.signal.aborted).toBe(false);
  });

  it('measures the time left by the monotonic clock', () => {
    const linked = new LinkedAbort(undefined, 1000);
    expect(linked).toMatchObject({ elapsed: 0, timeLeft: 1000 });
    vi.setSystemTime(Date.now() + 24 * 60 * 60 * 1000);
    vi.advanceTimersByTime(400);
    expect(linked).toMatchObject({ elapsed: 400, timeLeft: 600 });
    vi.advanceTimersByTime(5000);
    expect(linked).toMatchObject({ elapsed: 5400, timeLeft: 0 });
    const endless = new LinkedAbort();
    vi.advanceTimersByTime(1e9);
    expect(endless.timeLeft).toBe(Number.POSITIVE_INFINITY);
  });
});

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

it('waits by the real clock if fake timers were set before the library was imported', async () => {
  vi.useFakeTimers();
  try {
    vi.resetModules();
    const { clock, delay } = await import('../../src/shared/clock.js');
    const start = clock.now();
    await delay(5);
    expect(clock.now()).toBeGreaterThan(start);
  } finally {
    vi.useRealTimers();
  }
});
