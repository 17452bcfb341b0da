import { afterAll, beforeAll, onTestFinished, vi } from 'vitest';
import { clock } from '../../src/shared/clock.js';

const REAL = { ...clock };

/**
 * Fakes the timers of this test and of the library, which keeps those that it found when it loaded. Ends with the test, or with
 * `useRealClock`.
 *
 * @param options Of `vi.useFakeTimers`: `toFake` leaves out what a test with real sockets needs.
 */
export function useFakeClock(options?: Parameters<typeof vi.useFakeTimers>[0]): void {
  vi.useFakeTimers(options);
  Object.assign(clock, {
    setTimeout: globalThis.setTimeout,
    clearTimeout: globalThis.clearTimeout,
    setImmediate: globalThis.setImmediate,
    clearImmediate: globalThis.clearImmediate,
    setInterval: globalThis.setInterval,
    clearInterval: globalThis.clearInterval,
    now: () => performance.now(),
  });
  onTestFinished(useRealClock);
}

/** Ends the fake timers before the test ends. */
export function useRealClock(): void {
  vi.useRealTimers();
  Object.assign(clock, REAL);
}

/** Collects the timers that the library starts, until the end of the test. */
export function watchTimers() {
  const started = vi.spyOn(clock, 'setTimeout');
  onTestFinished(() => started.mockRestore());
  return started;
}

/** Stops the clock of the library until the mocks are restored. Returns a function that advances the clock by milliseconds. */
export function stopClock(): (milliseconds: number) => void {
  let time = clock.now();
  vi.spyOn(clock, 'now').mockImplementation(() => time);
  return (milliseconds) => void (time += milliseconds);
}

/**
 * Stops the clock of the library until the end of the test; its timers go on in real time. The returned function lets milliseconds pass
 * at once, and calls the timers that are due then: a test of a long time does not depend on how busy the machine is.
 */
export function useJumpingClock(): (milliseconds: number) => void {
  let time = clock.now();
  const pending = new Map<unknown, { readonly at: number; readonly call: () => void }>();
  const forget = (timer: NodeJS.Timeout) => {
    pending.delete(timer);
    REAL.clearTimeout(timer);
  };
  const start = (call: () => void, milliseconds = 0) => {
    const timer = REAL.setTimeout(() => {
      pending.delete(timer);
      call();
    }, milliseconds);
    pending.set(timer, { at: time + milliseconds, call });
    return timer;
  };
  Object.assign(clock, { now: () => time, setTimeout: start, clearTimeout: forget });
  onTestFinished(useRealClock);
  return (milliseconds) => {
    time += milliseconds;
    for (;;) {
      const due = [...pending].find(([, { at }]) => at <= time);
      if (!due) return;
      forget(due[0] as NodeJS.Timeout);
      due[1].call();
    }
  };
}

/** Until the end of the test, the clock of the library is these milliseconds later with each look at it. */
export function stepClock(milliseconds: number): void {
  let passed = 0;
  const now = vi.spyOn(clock, 'now').mockImplementation(() => REAL.now() + (passed += milliseconds));
  onTestFinished(() => now.mockRestore());
}

/**
 * In this file or `describe`, the pauses and timeouts of the library take a tenth of their time. For tests whose subject is
 * what follows a pause.
 */
export function useFastClock(): void {
  beforeAll(() => {
    const began = REAL.now();
    Object.assign(clock, {
      setTimeout: (end: () => void, milliseconds = 0) => REAL.setTimeout(end, milliseconds / 10),
      now: () => began + 10 * (REAL.now() - began),
    });
  });
  afterAll(useRealClock);
}
