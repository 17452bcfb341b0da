import { expect, it } from 'vitest';
import { withPooledBrowser, type Connector, type RunOptions } from '../../src/index.js';
import { playwright } from '../../src/playwright.js';
import { puppeteer } from '../../src/puppeteer.js';
import { useLocalPool } from '../support/local.js';

const used = useLocalPool();

const DRIVERS: readonly [name: string, connector: Connector<object>, options: RunOptions][] = [
  ['Playwright', playwright(), {}],
  ['Puppeteer over CDP', puppeteer(), {}],
  ['Puppeteer over BiDi', puppeteer(), { protocol: 'bidi' }],
];

it.concurrent.each(DRIVERS)('%s: a browser is released whose end fails and hangs', async (...driver) => {
  const [, real, options] = driver;
  const connector: Connector<object> = {
    ...real,
    connect: async (request) => ({
      ...(await real.connect(request)),
      cleanup: () => Promise.reject(new Error('mine')),
      disconnect: () => new Promise<never>(() => {}),
    }),
  };
  const run = await withPooledBrowser(used.pool, () => 'value', { ...options, connector });
  expect(run).toMatchObject({ value: 'value', released: 'destroyed' });
  expect(run.cleanupErrors.map(({ name }) => name)).toEqual(['CleanupError', 'CleanupError']);
});
