import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NO_UDP } from '../../../src/local/browser/chromium-flags.js';
import { LEASE_ENDS, type End } from '../../support/lease-ends.js';
import { useLocalPool } from '../../support/local.js';
import { PollingPages } from '../../support/polling-pages.js';
import { useWholeBrowser } from '../../support/whole-browser.js';

useWholeBrowser();
let pages: PollingPages;
beforeAll(async () => {
  pages = await PollingPages.open(1500);
});
afterAll(() => pages[Symbol.asyncDispose]());

/** Most ends once; `npm run bench -- allowed-hosts-ends` has the whole table. */
const ENDS: [client: keyof typeof LEASE_ENDS, end: string][] = [
  ['Playwright', 'throw'],
  ['Playwright', 'abort'],
  ['Playwright', "release 'leave'"],
  ['Playwright', "release 'reuse'"],
  ['Playwright', 'SIGTERM'],
  ['Puppeteer', "release 'destroy'"],
  ['Puppeteer', 'a context that the client closes'],
  ['proxy /', 'a client that leaves'],
  ['proxy /', 'pool.close()'],
  ['proxy /playwright', "release 'reuse'"],
];

async function watch(client: string, name: string, local: Parameters<End>[0]['local']) {
  const { allowedHosts, show } = pages;
  return pages.watch(await LEASE_ENDS[client]![name]!({ local, allowedHosts, show }));
}
const NOTHING = { packets: 0, ranFor: 0 };

describe('a page of an allowed host that looks for WebRTC all the time, and blocks while it is closed', () => {
  const used = useLocalPool();

  it.each(ENDS)('%s, %s: sends no packet, and does not run after the release', async (client, name) => {
    expect(await watch(client, name, used.local)).toEqual(NOTHING);
  });
});

describe('the same page in a browser whose WebRTC uses no UDP', () => {
  const used = useLocalPool({ args: NO_UDP });

  it('sends no packet after the connection is lost', async () => {
    const { packets } = await watch('Playwright', 'lost connection', used.local);
    expect(packets).toBe(0);
  });
});
