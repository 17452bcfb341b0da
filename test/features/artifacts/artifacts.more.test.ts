import type { EventEmitter } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { runOf, type FailedRun } from '../../../src/index.js';
import * as playwright from '../../../src/playwright.js';
import { DRIVERS } from '../../support/drivers.js';
import { useLocalPool } from '../../support/local.js';
import { useSite } from '../../support/site.js';

const used = useLocalPool();

/** A page that logs, throws, and has failing requests. It is longer than any window. */
const PAGE = `<!doctype html><title>Shop</title><link rel="icon" href="data:,">
<body style="margin:0"><div style="height:3000px"></div><script>
console.error('\\x1b[31mno stock\\x1b[0m for ' + location.href + ' http://user:my-password@shop.test/');
setTimeout(() => { throw new RangeError('the page failed'); });
for (const path of ['/missing?id=my-id', '/reset?my-code', '/cut?x=my-cut']) fetch(path).catch(() => {});
</script>`;

const site = useSite(({ url }, response) => {
  const isPage = url!.startsWith('/shop');
  if (url!.startsWith('/cut')) response.destroy();
  else response.writeHead(isPage ? 200 : 404, { 'content-type': 'text/html' }).end(isPage ? PAGE : 'none');
});
const shop = () => `${site.url}/shop?session=my-session#access_token=my-token`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'artifacts-'));
});

interface AnyPage {
  goto(url: string): Promise<unknown>;
}

/** Opens the shop, and waits until everything in it has failed. */
async function openShop(page: AnyPage): Promise<void> {
  const events = page as unknown as EventEmitter;
  const missing = (path: string) =>
    new Promise<void>((resolve) => {
      const onResponse = (response: { url(): string }) => response.url().includes(path) && resolve();
      events.on('response', onResponse);
    });
  const failed = ['pageerror', 'requestfailed'].map(
    (event) => new Promise((resolve) => events.once(event, resolve)),
  );
  // With the same URL, the browser would only move to the fragment of a page that an earlier lease left open.
  await page.goto('about:blank');
  await Promise.all([page.goto(shop()), missing('/missing'), missing('/reset'), ...failed]);
}

/** The run of a call that fails with this error. */
async function failedRun(
  running: Promise<unknown>,
  expected: unknown,
): Promise<FailedRun & { names: string[] }> {
  await expect(running).rejects.toBe(expected);
  const run = runOf(expected)!;
  return { ...run, names: run.artifacts.map((path) => basename(path)) };
}

type Entry = Record<string, unknown>;

function readLog(path: string): Entry[] {
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as Entry);
}

/** Width and height of a PNG, in pixels. */
function sizeOf(path: string): [number, number] {
  const bytes = readFileSync(path);
  expect(bytes.subarray(1, 4).toString()).toBe('PNG');
  return [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
}

describe.each(DRIVERS)('artifacts with $name', ({ run, openPage }) => {
  it('are a screenshot of each whole page, and its messages, errors and failed requests, without secrets', async () => {
    const mine = new Error('mine');
    const failing = run(
      used.pool,
      async (lease) => {
        await openShop(lease.page);
        await openShop((await openPage(lease)) as AnyPage);
        throw mine;
      },
      { artifacts: { folder } },
    );
    const { artifacts, names, cleanupErrors, session } = await failedRun(failing, mine);
    expect(cleanupErrors).toEqual([]);
    expect(names).toEqual(['console.jsonl', 'screenshot.png', 'screenshot-2.png']);
    expect(sizeOf(artifacts[1]!)).toEqual([1280, 3000]);
    expect(sizeOf(artifacts[2]!)[1]).toBe(3000);
    const entries = readLog(artifacts[0]!);
    const ofType = (type: string) => entries.filter((entry) => entry['type'] === type);
    expect(new Set(entries.map(({ type }) => type))).toEqual(
      new Set(['console', 'page-error', 'request-failed']),
    );
    expect(ofType('console').length).toBeGreaterThanOrEqual(2);
    const text = expect.stringMatching(/^no stock for http:/) as string;
    expect(ofType('console')[0]).toMatchObject({ level: 'error', text, line: 3 });
    expect(ofType('page-error')[0]!['text']).toContain('the page failed');
    expect(ofType('request-failed')).toMatchObject(
      expect.arrayContaining([
        expect.objectContaining({ method: 'GET', status: 404 }),
        expect.objectContaining({ reason: expect.stringContaining('ERR_') as string }),
      ]) as Entry[],
    );
    const log = readFileSync(artifacts[0]!, 'utf8');
    expect(log).toContain('/shop?session=[redacted]#access_token=[redacted]');
    expect(log).toContain('/reset?[redacted]"');
    expect(log).not.toMatch(/my-(session|token|id|code|cut|password)/);
    expect(log).not.toContain(session!.session_id);
    for (const code of ['\x1b', '\\u001b']) expect(log).not.toContain(code);
  });
});

describe('a trace of Playwright', () => {
  const call = (fn: (handles: playwright.PlaywrightHandles) => unknown) =>
    playwright.withPooledBrowser(used.pool, fn, {
      artifacts: { folder, trace: true, screenshot: false, console: false },
    });

  it('can be read by the trace viewer', async () => {
    const mine = new Error('mine');
    const failing = call(async ({ page }) => {
      await openShop(page);
      throw mine;
    });
    const { artifacts, names } = await failedRun(failing, mine);
    expect(names).toEqual(['trace.zip']);
    expect(statSync(artifacts[0]!).mode & 0o777).toBe(0o600);
    expect(readFileSync(artifacts[0]!).toString('latin1')).toMatch(/^PK[^]*trace\.network/);
  });

  it('is not written after a success, and does not disturb the next lease', async () => {
    for (const _ of [1, 2])
      expect(await call(({ page }) => openShop(page))).toMatchObject({
        cleanupErrors: [],
        released: 'reused',
      });
    expect(readdirSync(folder)).toEqual([]);
  });
});
