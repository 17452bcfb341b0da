import { getEventListeners, once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { raceAbort, raceEnd, raceTimeout, startTimer } from '../../src/shared/abort.js';
import { rejection } from '../service/support.js';

const REASON = new Error('enough');

/** A promise with its resolve and reject functions. */
function deferred<T>() {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((...ends) => ([resolve, reject] = ends));
  return { promise, resolve, reject };
}

describe('raceAbort', () => {
  it('resolves with the value if nothing aborts', async () => {
    const onLate = vi.fn();
    const { signal } = new AbortController();
    expect(await raceAbort(Promise.resolve('value'), signal, onLate)).toBe('value');
    expect(await raceAbort(Promise.resolve('value'), undefined, onLate)).toBe('value');
    expect(onLate).not.toHaveBeenCalled();
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it('rejects with a failure of the work', async () => {
    const { signal } = new AbortController();
    expect(await rejection(raceAbort(Promise.reject(REASON), signal))).toBe(REASON);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
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
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
  });

  it('rejects for an aborted signal, and passes the value to onLate', async () => {
    const onLate = vi.fn();
    const signal = AbortSignal.abort(REASON);
    expect(await rejection(raceAbort(Promise.resolve('value'), signal, onLate))).toBe(REASON);
    await Promise.resolve();
    expect(onLate.mock.calls).toStrictEqual([['value']]);
  });

  it('ignores work that fails after the abort', async () => {
    const { promise, reject } = deferred<string>();
    const race = rejection(raceAbort(promise, AbortSignal.abort(REASON)));
    reject(new Error('too late to matter'));
    expect(await race).toBe(REASON);
  });

  const TICKS = [0, 1, 2, 3, 4, 5, 6];
  const ORDERS = TICKS.flatMap((abortAfter) =>
    TICKS.map((resolveAfter) => [abortAfter, resolveAfter] as const),
  );

  it.each(ORDERS)(
    'delivers a value exactly once, with an abort after %i ticks and the value after %i',
    async (abortAfter, resolveAfter) => {
      const { promise, resolve } = deferred<string>();
      const controller = new AbortController();
      const onLate = vi.fn();
      const onTime = vi.fn();
      const race = raceAbort(promise, controller.signal, onLate).then(onTime, () => {});
      for (const tick of TICKS) {
        if (tick === resolveAfter) resolve('value');
        if (tick === abortAfter) controller.abort();
        await Promise.resolve();
      }
      await race;
      await promise;
      expect([...onTime.mock.calls, ...onLate.mock.calls]).toStrictEqual([['value']]);
    },
  );
});

describe('raceTimeout', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('throws the error of onTimeout after the timeout', async () => {
    const onEnd = vi.fn();
    const work = () => new Promise<never>(() => {});
    const race = rejection(raceTimeout(5000, work, () => REASON)).finally(onEnd);
    await vi.advanceTimersByTimeAsync(4999);
    expect(onEnd).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(await race).toBe(REASON);
  });

  it('settles with what arrived while the event loop was blocked for longer than the timeout', async () => {
    vi.useRealTimers();
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const [peer] = (await once(server, 'connection')) as [Socket];
    // After a check phase, timers fire before sockets are read.
    await new Promise(setImmediate);
    const work = () => once(client, 'data').then(String);
    const race = raceTimeout(20, work, () => REASON);
    peer.write('answer');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    expect(await race).toBe('answer');
    peer.destroy();
    client.destroy();
    await once(server.close(), 'close');
  });

  it('leaves no timer after the work has ended', async () => {
    expect(
      await raceTimeout(
        5000,
        () => Promise.resolve('value'),
        () => REASON,
      ),
    ).toBe('value');
    await rejection(
      raceTimeout(
        5000,
        () => Promise.reject(new Error('mine')),
        () => REASON,
      ),
    );
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('startTimer', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it.each([2 ** 31, Number.POSITIVE_INFINITY])('never fires for %s ms, instead of immediately', (ms) => {
    const onEnd = vi.fn();
    expect(startTimer(ms, onEnd)).toBeUndefined();
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

describe('raceEnd', () => {
  const never = new Promise<never>(() => {});
  const onEnd = (how: string) => new Error(`ended: ${how}`);

  it('settles as the work does, and creates no error for a later end', async () => {
    const made: string[] = [];
    const remember = (how: string) => {
      made.push(how);
      return onEnd(how);
    };
    const ended = new Promise<string>((resolve) => setTimeout(resolve, 10, 'closed'));
    expect(await raceEnd(Promise.resolve('done'), ended, remember)).toBe('done');
    await expect(raceEnd(Promise.reject(new Error('mine')), ended, remember)).rejects.toThrow('mine');
    await ended;
    expect(made).toEqual([]);
  });

  it('fails with the error of an earlier end, whatever the work does later', async () => {
    await expect(raceEnd(never, Promise.resolve('dropped'), onEnd)).rejects.toThrow('ended: dropped');
    const late = new Promise<never>((_resolve, reject) => setTimeout(reject, 1, new Error('late')));
    await expect(raceEnd(late, Promise.resolve('dropped'), onEnd)).rejects.toThrow('ended: dropped');
    await late.catch(() => {});
  });
});
