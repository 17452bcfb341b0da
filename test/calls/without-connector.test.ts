import { expect, it } from 'vitest';
import { workPooledBrowsers } from '../../src/bullmq.js';
import * as root from '../../src/index.js';
import { rejection } from '../pool/support.js';
import { PlayedLease } from '../support/played-lease.js';

/** What a program without types can pass instead of options with a connector. */
const WRONG: readonly unknown[] = [
  undefined,
  null,
  'playwright',
  {},
  { connector: undefined },
  { connector: {} },
  { connector: { connect: async () => {} } },
];

/** The functions that work with any automation library, as an editor imports them by mistake. */
const CALLS: readonly [name: string, call: (pool: root.BrowserPool, options: never) => Promise<unknown>][] = [
  ['withPooledBrowser', async (pool, options) => root.withPooledBrowser(pool, () => {}, options)],
  ['leaseBrowser', async (pool, options) => root.leaseBrowser(pool, options)],
  ['attachBrowser', async (_pool, options) => root.attachBrowser('a secret', options)],
  ['mapPooledBrowsers', async (pool, options) => root.mapPooledBrowsers(pool, [1], () => {}, options)],
  ['workPooledBrowsers', async (pool, options) => workPooledBrowsers('a queue', pool, () => {}, options)],
];

it.each(CALLS)('%s of the root says what is missing before it sends anything', async (name, call) => {
  await using played = await PlayedLease.start();
  for (const options of WRONG) {
    const error = await rejection(call(played.pool, options as never));
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION' });
    expect(error.message).toMatch(
      new RegExp(`^${name} .* needs \\{ connector \\}.*'pooled-browser/playwright'`),
    );
  }
  expect(played.service.of('acquire')).toEqual([]);
});

it('serveProxy, which needs no library, refuses options that are none', async () => {
  await using played = await PlayedLease.start();
  for (const options of [null, 5, 'a text']) {
    const error = await rejection(root.serveProxy(played.pool, options as never));
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', option: 'options' });
  }
});
