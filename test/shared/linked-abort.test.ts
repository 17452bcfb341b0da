import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { LinkedAbort } from '../../src/shared/abort.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('aborts with its parent, and with the reason of its parent', () => {
  const parent = new AbortController();
  const linked = new LinkedAbort(parent.signal);
  expect(linked.signal.aborted).toBe(false);
  parent.abort('enough');
  expect(linked).toMatchObject({ timedOut: false, signal: { aborted: true, reason: 'enough' } });
});

it('starts aborted if its parent has aborted', () => {
  const linked = new LinkedAbort(AbortSignal.abort('before'), 1000);
  expect(linked.signal).toMatchObject({ aborted: true, reason: 'before' });
  linked.dispose();
  expect(vi.getTimerCount()).toBe(0);
});

it('aborts after its timeout, and reports it', () => {
  const linked = new LinkedAbort(undefined, 1000);
  vi.advanceTimersByTime(999);
  expect(linked.signal.aborted).toBe(false);
  // One for the timer, one for the end of that iteration of the event loop.
  vi.advanceTimersByTime(2);
  expect(linked).toMatchObject({ timedOut: true, signal: { reason: { name: 'TimeoutError' } } });
});

it('keeps the first reason', () => {
  const parent = new AbortController();
  const linked = new LinkedAbort(parent.signal);
  linked.abort('first');
  parent.abort('second');
  linked.abort('third');
  expect(linked.signal.reason).toBe('first');
});

it('reports no timeout if something else aborted it first', () => {
  const parent = new AbortController();
  const linked = new LinkedAbort(parent.signal, 1000);
  parent.abort('first');
  vi.advanceTimersByTime(2000);
  expect(linked.signal.reason).toBe('first');
  expect(linked.timedOut).toBe(false);
});

it('does not abort its parent', () => {
  const parent = new AbortController();
  new LinkedAbort(parent.signal).abort('mine');
  expect(parent.signal.aborted).toBe(false);
});

it('leaves no listener and no timer', () => {
  const parent = new AbortController();
  const links = Array.from({ length: 20 }, () => new LinkedAbort(parent.signal, 1000));
  expect(getEventListeners(parent.signal, 'abort')).toHaveLength(20);
  for (const linked of links) linked.dispose();
  expect(getEventListeners(parent.signal, 'abort')).toHaveLength(0);
  expect(vi.getTimerCount()).toBe(0);
  parent.abort('after');
  expect(links[0]?.signal.aborted).toBe(false);
});

it('leaves no listener on a parent that was aborted before', () => {
  const signal = AbortSignal.abort();
  new LinkedAbort(signal).dispose();
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

it('lets any number of calls share a signal, without a warning of a leak', async () => {
  vi.useRealTimers();
  const warnings: string[] = [];
  const onWarning = ({ name }: Error) => void warnings.push(name);
  process.on('warning', onWarning);
  const parent = new AbortController();
  const calls = Array.from({ length: 20 }, () => new LinkedAbort(parent.signal));
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  process.off('warning', onWarning);
  expect(warnings).toEqual([]);
  for (const call of calls) call.dispose();
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
