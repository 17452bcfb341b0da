import { truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serveProxy } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { namespaceRefusal, startInNamespace, type FarBrowser } from '../support/far-browser.js';
import { useSite } from '../support/site.js';

const CONTENT = Buffer.from(Array.from({ length: 1_300_001 }, (_, index) => index % 251));
/** More than Playwright sends to a browser that is not on the same machine. */
const LARGE = 52 * 1024 * 1024;

const refusal = namespaceRefusal();
if (refusal !== undefined) console.warn(`The uploads to another machine are skipped: ${refusal}.`);

/** Answers with the number of bytes and their sum. */
const site = useSite(async (request, response) => {
  response.setHeader('content-type', 'text/html');
  if (request.method === 'GET') return response.end('<input type=file multiple>');
  let [size, sum] = [0, 0];
  for await (const bytes of request as AsyncIterable<Buffer>) {
    size += bytes.length;
    for (const byte of bytes) sum += byte;
  }
  return response.end(`${size} ${sum}`);
});
const sumOf = (bytes: Buffer) => `${bytes.length} ${bytes.reduce((sum, byte) => sum + byte, 0)}`;

/** Uploads the chosen files, one after the other. Runs in the page. */
const UPLOAD = `(async () => {
  const results = [];
  for (const file of document.querySelector('input').files) {
    const response = await fetch('/', { method: 'POST', body: file });
    results.push([file.name, await response.text()]);
  }
  return results;
})()`;

const small = join(tmpdir(), 'häl lo.pdf');
const large = join(tmpdir(), 'large.bin');
let far: FarBrowser;

beforeAll(() => {
  writeFileSync(small, CONTENT);
  writeFileSync(large, '');
  truncateSync(large, LARGE);
});
describe.skipIf(refusal !== undefined)('to a browser on another machine', () => {
  beforeAll(async () => {
    far = await startInNamespace();
  });
  afterAll(() => far?.[Symbol.asyncDispose]());

  const upload = (files: string[], connectOptions: { isLocal?: boolean } = {}) =>
    playwright.withPooledBrowser(
      far.pool,
      async ({ page }) => {
        await page.goto(site.url);
        // A busy machine needs more than the usual 30 s.
        await page.locator('input').setInputFiles(files, { timeout: 110_000 });
        return page.evaluate(UPLOAD);
      },
      { connectOptions },
    );

  it('Playwright sends files up to 50 MB, and its error says what to do with larger ones', async () => {
    expect((await upload([small])).value).toEqual([['häl lo.pdf', sumOf(CONTENT)]]);
    const error: unknown = await upload([large]).catch((thrown: unknown) => thrown);
    expect((error as Error).message).toMatch(
      /larger than 50Mb .*\. Lease the browser with connectOptions: \{ isLocal: true \}/,
    );
  });

  it('Playwright sends larger files with isLocal: true, and nothing of them stays there', async () => {
    const run = await upload([small, large], { isLocal: true });
    expect(run.value).toEqual([
      ['häl lo.pdf', sumOf(CONTENT)],
      ['large.bin', `${LARGE} 0`],
    ]);
    expect(run).toMatchObject({ cleanupErrors: [], released: 'reused' });
    expect(far.uploads().map(({ size }) => size)).toEqual([0, 0]);
  });

  it("a client of Playwright's protocol sends files of any size, and nothing of them stays there", async () => {
    await using proxy = await serveProxy(far.pool);
    const browser = await chromium.connect(proxy.playwrightUrl!);
    const page = await browser.newPage();
    await page.goto(site.url);
    await page.locator('input').setInputFiles([small, large]);
    expect(await page.evaluate(UPLOAD)).toEqual([
      ['häl lo.pdf', sumOf(CONTENT)],
      ['large.bin', `${LARGE} 0`],
    ]);
    await browser.close();
    await proxy.close();
    expect(far.uploads().every(({ size }) => size === 0)).toBe(true);
  });

  it.each(['cdp', 'bidi'] as const)('Puppeteer over %s sends files', async (protocol) => {
    const visit = async ({ page }: puppeteer.PuppeteerHandles) => {
      await page.goto(site.url);
      const input = (await page.$('input')) as unknown as { uploadFile(...paths: string[]): Promise<void> };
      await input.uploadFile(small, small);
      return page.evaluate(UPLOAD);
    };
    const { value, cleanupErrors } = await puppeteer.withPooledBrowser(far.pool, visit, { protocol });
    expect(value).toEqual([
      ['häl lo.pdf', sumOf(CONTENT)],
      ['häl lo.pdf', sumOf(CONTENT)],
    ]);
    expect(cleanupErrors).toEqual([]);
  });
});
