import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { withAbortGrace } from '../../src/shared/abort.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});

afterEach(() => {
  vi.useRealTimers();
});

/** Work that is under way, and the outcome of waiting for it. */
function wait(signal?: AbortSignal) {
  let finish!: (value: string) => void;
  let fail!: (error: unknown) => void;
  const work = new Promise<string>((resolve, reject) => {
    [finish, fail] = [resolve, reject];
  });
  const outcome: unknown[] = [];
  void withAbortGrace(signal, work).then(
    (value) => outcome.push(value),
    (error) => outcome.push({ error }),
  );
  return { finish, fail, outcome };
}

it('has the outcome of the work, with and without a signal', async () => {
  for (const signal of [undefined, new AbortController().signal]) {
    const [done, failed] = [wait(signal), wait(signal)];
    done.finish('value');
    failed.fail('mine');
    await vi.advanceTimersByTimeAsync(0);
    expect([done.outcome, failed.outcome]).toEqual([['value'], [{ error: 'mine' }]]);
  }
});

it.each(['meanwhile', 'before'])('rejects with the reason one second after an abort %s', async (when) => {
  const controller = new AbortController();
  if (when === 'before') controller.abort('left');
  const { outcome } = wait(controller.signal);
  if (when === 'meanwhile') controller.abort('left');
  await vi.advanceTimersByTimeAsync(999);
  expect(outcome).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(outcome).toEqual([{ error: 'left' }]);
});

it('has the outcome of work that ends within that second', async () => {
  const controller = new AbortController();
  const { outcome, fail } = wait(controller.signal);
  controller.abort('left');
  await vi.advanceTimersByTimeAsync(500);
  fail('with the run behind it');
  await vi.advanceTimersByTimeAsync(0);
  expect(outcome).toEqual([{ error: 'with the run behind it' }]);
});

it('leaves no listener and no timer', async () => {
  const controller = new AbortController();
  const { finish, outcome } = wait(controller.signal);
  finish('value');
  await vi.advanceTimersByTimeAsync(0);
  expect(outcome).toEqual(['value']);
  expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  const aborted = wait(controller.signal);
  controller.abort('left');
  aborted.finish('value');
  await vi.advanceTimersByTimeAsync(0);
  expect(vi.getTimerCount()).toBe(0);
});
