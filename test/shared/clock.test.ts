import { expect, it, vi } from 'vitest';

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
