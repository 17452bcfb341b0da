import { mkdtemp, readFile, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { RunEvent } from '../../../src/index.js';
import * as playwright from '../../../src/playwright.js';
import * as puppeteer from '../../../src/puppeteer.js';
import { DRIVERS, type AnyLease } from '../../support/drivers.js';
import {
  namespaceRefusal,
  startBehindPaths,
  startInNamespace,
  type FarBrowser,
} from '../../support/far-browser.js';
import { useSite } from '../../support/site.js';

/** Larger than one part of a copy, and not a multiple of it. */
const CONTENT = Buffer.from(Array.from({ length: 1_300_001 }, (_, index) => index % 251));
const LARGE = Buffer.alloc(9 * 1024 * 1024, 'large');

const refusal = namespaceRefusal();
if (refusal !== undefined) console.warn(`The tests in a mount namespace are skipped: ${refusal}.`);

/** Ends the response of /slow. */
let finish = () => {};
const site = useSite((request, response) => {
  const [, name = ''] = /^\/file\/(.+)$/.exec(request.url!) ?? [];
  if (name === '' && request.url !== '/slow') {
    response.setHeader('content-type', 'text/html');
    const links = ['/file/one', '/file/two', '/file/large', '/slow'];
    return void response.end(links.map((url) => `<a id=${basename(url)} href=${url}>${url}</a>`).join(' '));
  }
  response.setHeader('content-type', 'application/octet-stream');
  response.setHeader('content-disposition', `attachment; filename="${name || 'slow'}; rm .bin"`);
  if (name !== '') return void response.end(name === 'large' ? LARGE : CONTENT);
  response.write(CONTENT);
  finish = () => response.end(CONTENT);
});
let folder: string;
let far: FarBrowser;

beforeAll(async () => {
  if (refusal === undefined) far = await startInNamespace();
});
afterAll(() => far?.[Symbol.asyncDispose]());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'files-'));
});
/** Clicks on a link, and returns when its download is certain. Puppeteer has no event of a download. */
async function click({ page }: AnyLease, id: string): Promise<void> {
  const { waitForEvent, waitForResponse } = page as unknown as Record<
    string,
    (what: unknown) => Promise<void>
  >;
  const isIt = (response: { url(): string }) => response.url().endsWith(id);
  const begun = waitForEvent?.call(page, 'download') ?? waitForResponse!.call(page, isIt);
  await page.evaluate(`document.getElementById('${id}').click()`);
  await begun;
}

describe.each([
  {
    name: 'in a mount namespace of its own',
    // Further tests use it.
    start: async () => ({ ...far, [Symbol.asyncDispose]: async () => {} }),
    isSkipped: refusal !== undefined,
  },
  { name: 'whose files are at other paths', start: startBehindPaths, isSkipped: false },
])('a browser $name', ({ start, isSkipped }) => {
  it.skipIf(isSkipped)("works with Playwright's own API, and keeps nothing of the file", async () => {
    await using browser = await start();
    const run = await playwright.withPooledBrowser(browser.pool, async ({ page, context }) => {
      await page.goto(site.url);
      const [download] = await Promise.all([page.waitForEvent('download'), page.click('#one')]);
      const saved = join(folder, 'saved');
      await download.saveAs(saved);
      const files = [await readFile(await download.path()), await readFile(saved)];
      files.push(await buffer(await download.createReadStream()));
      return { files, pages: context.pages().length, failure: await download.failure() };
    });
    expect(run.value.files.map((file) => file.equals(CONTENT))).toEqual([true, true, true]);
    expect(run.value).toMatchObject({ pages: 1, failure: null });
    expect(run).toMatchObject({ cleanupErrors: [], downloads: [] });
    expect(browser.files().map(({ size }) => size)).toEqual([0]);
  });
});

describe.skipIf(refusal !== undefined)('with the option downloads', () => {
  it.each(DRIVERS)('$name receives all files, and no file replaces another one', async ({ run }) => {
    const events: RunEvent[] = [];
    const options = { downloads: folder, onEvent: (event: RunEvent) => void events.push(event) };
    const started = () => events.filter(({ type }) => type === 'download-started').length;
    const { downloads, ...result } = await run(
      far.pool as never,
      async (lease) => {
        await lease.page.goto(site.url);
        for (const [before, id] of ['one', 'one', 'large'].entries()) {
          // Over BiDi, the library may miss the response of a download: chromium-bidi can report it before its request.
          await lease.page.evaluate(`document.getElementById('${id}').click()`);
          await expect.poll(started, { timeout: 20_000 }).toBe(before + 1);
        }
      },
      options,
    );
    expect(result).toMatchObject({ cleanupErrors: [], released: 'reused' });
    const sizes = downloads.map(({ size }) => size).toSorted((one, other) => one - other);
    expect(sizes).toEqual([CONTENT.length, CONTENT.length, LARGE.length]);
    expect(new Set(downloads.map(({ path }) => path)).size).toBe(3);
    for (const { path, url, suggestedFilename } of downloads) {
      expect(dirname(path)).toBe(folder);
      expect(basename(path)).toMatch(/^(one|large)- rm\.bin$|^one- rm-\w{6}\.bin$/);
      expect(suggestedFilename).toBe(`${basename(url)}; rm .bin`);
      expect((await readFile(path)).equals(url.endsWith('large') ? LARGE : CONTENT)).toBe(true);
      expect((await stat(path)).mode & 0o777).toBe(0o600);
    }
    const types = events.map(({ type }) => type).filter((type) => type.startsWith('download'));
    expect(types.filter((type) => type === 'downloaded')).toHaveLength(3);
    expect(started()).toBe(3);
    const copied = events.filter((event) => event.type === 'download-progress' && event.stage === 'copy');
    expect(copied).toHaveLength(2);
    expect(far.files().filter(({ size }) => size > 0)).toEqual([]);
  });

  it('waits for a running download at the end, and reports one that it cuts', async () => {
    const visit = (lease: AnyLease) => lease.page.goto(site.url).then(() => click(lease, 'slow'));
    const end = (event: RunEvent) => void (event.type === 'callback-ended' && setTimeout(finish, 50));
    const [driver] = DRIVERS;
    const whole = await driver!.run(far.pool as never, visit, { downloads: folder, onEvent: end });
    expect(whole).toMatchObject({ cleanupErrors: [], downloads: [{ size: 2 * CONTENT.length }] });
    const cut = await driver!.run(far.pool as never, visit, { downloads: { folder, timeout: 100 } });
    expect(cut).toMatchObject({
      released: 'reused',
      downloads: [],
      cleanupErrors: [{ code: 'ERR_DOWNLOAD', suggestedFilename: 'slow; rm .bin' }],
    });
    expect(cut.cleanupErrors[0]!.message).toBe(
      'The download "slow; rm .bin" did not arrive: it took longer than 100 ms (option downloads.timeout).',
    );
  });

  it('cancels a file that is too large', async () => {
    const { downloads, cleanupErrors } = await puppeteer.withPooledBrowser(
      far.pool,
      async (lease) => {
        await lease.page.goto(site.url);
        await click(lease as never, 'large');
        await click(lease as never, 'two');
      },
      { downloads: { folder, maxSize: 2_000_000 } },
    );
    expect(downloads.map(({ size }) => size)).toEqual([CONTENT.length]);
    expect(cleanupErrors.map(({ message }) => message)).toEqual([
      `The download "large; rm .bin" did not arrive: it has ${LARGE.length} bytes, and the largest allowed file 2000000 ` +
        '(option downloads.maxSize).',
    ]);
    expect(far.files().filter(({ size }) => size > 0)).toEqual([]);
  });

  it.each([
    { library: 'Playwright', map: playwright.mapPooledBrowsers, isolation: 'context' as const },
    { library: 'Puppeteer', map: puppeteer.mapPooledBrowsers, isolation: 'none' as const },
  ])('gives each task of $library its own files, with isolation $isolation', async ({ map, isolation }) => {
    const task = async (lease: AnyLease & { input: string }) => {
      await lease.page.goto(site.url);
      await click(lease, lease.input);
    };
    const options = { downloads: folder, pagesPerLease: 2, concurrency: 1, isolation };
    const outcomes = map(far.pool, ['one', 'two', 'large', 'one'], task as never, options);
    const files: string[] = [];
    for await (const { input, downloads } of outcomes)
      files.push([input, ...downloads.map(({ url }) => basename(url))].join());
    expect(files.toSorted()).toEqual(['large,large', 'one,one', 'one,one', 'two,two']);
  });

  it('shows the files of a held lease as they arrive', async () => {
    await using held = await puppeteer.leaseBrowser(far.pool, { downloads: folder });
    await held.page.goto(site.url);
    await click(held as never, 'one');
    await expect.poll(() => held.downloads).toMatchObject([{ size: CONTENT.length }]);
    expect(await held.release()).toMatchObject({ downloads: [{ size: CONTENT.length }] });
  });
});
