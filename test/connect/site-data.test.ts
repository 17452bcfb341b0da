import { expect, it, vi } from 'vitest';
import { SiteDataCleaner } from '../../src/connect/site-data.js';
import { rejection } from '../pool/support.js';
import { HISTOGRAMS } from '../support/histograms.js';
import { useFakeClock } from '../support/fake-clock.js';

it('fails if the page does not become blank in time', async () => {
  useFakeClock({ toFake: ['setTimeout', 'clearTimeout'] });
  const cleaner = new SiteDataCleaner(async () => ({ histograms: HISTOGRAMS }));
  const clearing = rejection(cleaner.clear());
  vi.advanceTimersByTime(2000);
  expect((await clearing).message).toContain('did not respond within 2 s');
});
