import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, expect, it, vi } from 'vitest';
import { SiteDataCleaner } from '../../src/connect/site-data.js';
import { rejection } from '../service/support.js';
import { useFakeClock } from '../support/fake-clock.js';

beforeEach(() => useFakeClock({ toFake: ['setTimeout', 'clearTimeout'] }));

it('clears the data if the answers arrived while the event loop was blocked for longer than the timeout', async () => {
  const send = async (_method: string, { expression = '' }: { expression?: string } = {}) => {
    await nextTurn();
    if (expression.startsWith('location.replace')) cleaner.onNavigated('about:blank', true);
    return { histograms: [] };
  };
  const cleaner = new SiteDataCleaner(send);
  const clearing = cleaner.clear();
  // The timer fires before the answers are read.
  vi.advanceTimersByTime(10_000);
  expect(await clearing).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});

it('fails if the page does not become blank in time', async () => {
  const cleaner = new SiteDataCleaner(async () => ({ histograms: [] }));
  const clearing = rejection(cleaner.clear());
  vi.advanceTimersByTime(2000);
  expect((await clearing).message).toContain('did not respond within 2 s');
});
