import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Deadline } from '../../src/shared/abort.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('counts down from its limit and stays at zero', () => {
  const deadline = new Deadline(1000);
  expect(deadline).toMatchObject({ elapsed: 0, remaining: 1000, passed: false });
  vi.advanceTimersByTime(400);
  expect(deadline).toMatchObject({ elapsed: 400, remaining: 600, passed: false });
  vi.advanceTimersByTime(600);
  expect(deadline).toMatchObject({ elapsed: 1000, remaining: 0, passed: true });
  vi.advanceTimersByTime(5000);
  expect(deadline).toMatchObject({ elapsed: 6000, remaining: 0, passed: true });
});

it('never passes when it is infinite', () => {
  const deadline = new Deadline(Number.POSITIVE_INFINITY);
  vi.advanceTimersByTime(1e9);
  expect(deadline).toMatchObject({ remaining: Number.POSITIVE_INFINITY, passed: false });
});

it('does not care for the wall clock, which may jump a day', () => {
  const deadline = new Deadline(1000);
  vi.setSystemTime(Date.now() + 24 * 60 * 60 * 1000);
  expect(deadline.remaining).toBe(1000);
});
