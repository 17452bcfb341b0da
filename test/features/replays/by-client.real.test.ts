import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BrowserPool, runOf, serveProxy, type Replay, type RunEvent } from '../../../src/index.js';
import * as withPlaywright from '../../../src/playwright.js';
import * as withPuppeteer from '../../../src/puppeteer.js';
import { startLocalPool } from '../../../src/local.js';
import { cdp, kernel } from '../../../src/services.js';
import { startChromium } from '../../support/chromium.js';
import { Site } from '../../support/site.js';
import { COMPLETE, readReplay, RECORD } from './support.js';

const folder = mkdtempSync(join(tmpdir(), 'by-client-'));
let browser: Awaited<ReturnType<typeof startChromium>>;
let pool: BrowserPool<{ readonly id: string }>;
beforeAll(async () => {
  browser = await startChromium();
  pool = new BrowserPool('shop', { service: cdp(browser.url) });
});
afterAll(async () => {
  await pool.close();
  await browser[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const PAGE = 'data:text/html,<title>Shop</title><h1>Shop</h1><button>Buy</button>';
const LIBRARIES = { playwright: withPlaywright, puppeteer: withPuppeteer } as const;

describe.each(['playwright', 'puppeteer'] as const)('a service without recordings, with %s', (library) => {
  const { withPooledBrowser } = LIBRARIES[library] as typeof withPlaywright;

  it('has a replay of the lease, recorded by this process, with the name of the lease', async () => {
    const events: RunEvent[] = [];
    const name = `${library}-buys`;
    const options = {
      ...RECORD,
      name,
      recording: { folder },
      onEvent: (event: RunEvent) => events.push(event),
    };
    const run = await withPooledBrowser(
      pool,
      async ({ page }) => {
        await page.goto(PAGE);
        await page.click('button');
      },
      options as object,
    );
    expect(run).toMatchObject({ replayStatus: 'ready', cleanupErrors: [] });
    expect(run).not.toHaveProperty('moment');
    const [replay] = run.replays;
    expect(run.replays).toHaveLength(1);
    expect(replay).toMatchObject({ name, recorded_by: 'client', access: 'public' });
    const { facts, files, own } = readReplay(replay!);
    expect(files).toEqual(COMPLETE);
    expect(statSync(own).mode & 0o777).toBe(0o700);
    for (const file of files) expect(statSync(join(own, file)).mode & 0o777).toBe(0o600);
    expect(facts).toMatchObject({
      state: 'ready',
      leaseName: name,
      pool: 'shop',
      service: 'cdp',
      result: 'succeeded',
    });
    expect(facts.masked).toBeUndefined();
    expect(facts.video!.size).toBeGreaterThan(1_000);
    const kinds = facts.timeline.map(({ kind }) => kind);
    expect(kinds).toEqual(expect.arrayContaining(['navigation', 'click', 'recording-ended']));
    const types = events.map(({ type }) => type).filter((type) => /record|replays/.test(type));
    expect(types).toEqual(['recording-started', 'recording-stopped', 'replays', 'replays']);
  });

  it('has the moment of the failure of a callback that throws, beside the replay', async () => {
    const fails = async ({ page }: { page: { goto(url: string): Promise<unknown> } }) => {
      await page.goto(PAGE);
      throw new Error('The cart is empty.\nMore lines.');
    };
    const options = { ...RECORD, recording: { folder } };
    const error: unknown = await withPooledBrowser(pool, fails as never, options as object).catch(
      (reason: unknown) => reason,
    );
    const { replays, moment, replayStatus } = runOf(error)!;
    expect(replayStatus).toBe('ready');
    const { facts } = readReplay(replays[0]!);
    const failed = facts.timeline.find(({ kind }) => kind === 'failed');
    expect(failed).toMatchObject({ text: 'The cart is empty. · More lines.' });
    expect(facts.result).toBe('failed');
    const [, link, seconds] = /^(.*)#t=([\d.]+)$/.exec(moment!)!;
    expect(link).toBe(replays[0]!.replay_view_url);
    expect(Number(seconds) * 1000).toBeCloseTo(failed!.at, -2);
  });

  it('keeps only recordings in which something failed, with keepOnly', async () => {
    const own = join(folder, `failures-${library}`);
    const options = { ...RECORD, recording: { folder: own, keepOnly: 'failures' } } as object;
    const run = await withPooledBrowser(pool, async ({ page }) => void (await page.goto(PAGE)), options);
    expect(run).toMatchObject({ replays: [], replayStatus: 'none', cleanupErrors: [] });
    const isRecording = (name: string) => name.startsWith('20');
    expect(readdirSync(own).filter(isRecording)).toEqual([]);
    const fails = () => Promise.reject(new Error('seeded'));
    const error: unknown = await withPooledBrowser(pool, fails, options).catch((reason: unknown) => reason);
    expect(runOf(error)!.replays).toHaveLength(1);
    expect(readdirSync(own).filter(isRecording)).toHaveLength(1);
  });
});

const { withPooledBrowser, leaseBrowser, attachBrowser, mapPooledBrowsers } = withPlaywright;

it('names the tasks of a map in the recording of their lease, and links to the moment of the one that failed', async () => {
  const replays: Replay[] = [];
  const outcomes: { status: string; moment?: string }[] = [];
  const job = mapPooledBrowsers(
    pool,
    ['first', 'second'],
    async ({ page, input }) => {
      await page.goto(PAGE);
      if (input === 'second') throw new Error('No price.');
      return input;
    },
    {
      ...RECORD,
      recording: { folder },
      retries: 0,
      concurrency: 1,
      ordered: true,
      onEvent: (event) => {
        if (event.type === 'replays') replays.splice(0, replays.length, ...event.replays);
      },
    },
  );
  for await (const outcome of job) outcomes.push(outcome);
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  expect(outcomes[0]).not.toHaveProperty('moment');
  expect(outcomes[1]!.moment).toMatch(/^file:.*index\.html#t=[\d.]+$/);
  const { facts } = readReplay(replays[0]!);
  const told = facts.timeline.filter(({ kind }) => kind === 'mark' || kind === 'failed');
  expect(told.map(({ kind, text }) => `${kind} ${text}`)).toEqual([
    'mark first',
    'mark second',
    'failed No price.',
  ]);
});

it('records a lease that is held, and one that another process began, each in a replay of its own', async () => {
  const lease = await leaseBrowser(pool, { ...RECORD, recording: { folder } });
  await lease.page.goto(PAGE);
  const soFar = await lease.replays();
  expect(soFar).toMatchObject([{ recorded_by: 'client' }]);
  expect(soFar[0]).not.toHaveProperty('finished_at');
  // Its link opens at once.
  expect(existsSync(fileURLToPath(soFar[0]!.replay_view_url!))).toBe(true);
  const detached = await lease.detach();
  const attached = await attachBrowser(detached, { pool, ...RECORD, recording: { folder } });
  await attached.page.goto(PAGE);
  const { replays, replayStatus } = await attached.release();
  expect(replayStatus).toBe('ready');
  expect(replays).toHaveLength(1);
  expect(replays[0]!.replay_id).not.toBe(soFar[0]!.replay_id);
  expect(readReplay(replays[0]!).files).toEqual(COMPLETE);
});

it('records what a client of a proxy does', async () => {
  const { chromium } = await import('playwright-core');
  const released: Replay[] = [];
  const proxy = await serveProxy(pool, {
    ...RECORD,
    recording: { folder },
    onClient: (event) => {
      if (event.type === 'released') released.push(...event.summary.replays);
    },
  });
  const client = await chromium.connectOverCDP(proxy.url);
  const page = await client.contexts()[0]!.newPage();
  await page.goto(PAGE);
  await client.close();
  await proxy.close();
  expect(released).toHaveLength(1);
  const { facts, files } = readReplay(released[0]!);
  expect(files).toEqual(COMPLETE);
  expect(facts.timeline.some(({ kind, text }) => kind === 'navigation' && text.includes('Shop'))).toBe(true);
});

it('goes on in the same recording after the connection was replaced', async () => {
  const lease = await leaseBrowser(pool, { ...RECORD, recording: { folder }, reconnect: 'lazy' });
  await lease.page.goto(PAGE);
  await lease.reconnect();
  await lease.page.goto('data:text/html,<title>Again</title><body style="background:teal">');
  await sleep(500);
  const { replays } = await lease.release();
  expect(replays).toHaveLength(1);
  const { facts } = readReplay(replays[0]!);
  const navigations = facts.timeline.filter(({ kind }) => kind === 'navigation').map(({ text }) => text);
  expect(navigations.join()).toMatch(/Shop.*Again/s);
});

it('leaves a video of what a browser showed until it was lost', async () => {
  await using lost = await startChromium();
  await using own = new BrowserPool('lost', { service: cdp(lost.url) });
  const running = withPooledBrowser(
    own,
    async ({ page }) => {
      await page.goto(PAGE);
      await sleep(500);
      lost.kill();
      return page.waitForTimeout(60_000);
    },
    { ...RECORD, recording: { folder } },
  );
  const error: unknown = await running.catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 'ERR_BROWSER_LOST' });
  const { replays, replayStatus } = runOf(error)!;
  expect(replayStatus).toBe('ready');
  const { facts, files } = readReplay(replays[0]!);
  expect(files).toEqual(COMPLETE);
  expect(facts).toMatchObject({ state: 'ready', result: 'failed' });
});

it('never fails a run because its folder cannot be written, and says so', async () => {
  const closed = join(folder, 'closed');
  // A file stands in its place: also root can't create the folder.
  writeFileSync(closed, '');
  const events: RunEvent[] = [];
  const run = await withPooledBrowser(pool, ({ page }) => page.goto(PAGE).then(() => 'value'), {
    ...RECORD,
    recording: { by: 'client', folder: closed },
    onEvent: (event) => events.push(event as RunEvent),
  });
  expect(run).toMatchObject({ value: 'value', replays: [], replayStatus: 'unavailable' });
  expect(run.cleanupErrors.map(String).join()).toContain(closed);
  expect(events.some(({ type }) => type === 'recording-unavailable')).toBe(true);
});

it('refuses to let the service record what only this process can, before anything is sent', async () => {
  for (const recording of [{ single: true }, { hide: ['#card'] }] as const) {
    const run = withPooledBrowser(pool, () => {}, { ...RECORD, recording: { ...recording, by: 'service' } });
    await expect(run).rejects.toThrow(/needs a recording by this process/);
  }
});

it('writes no secret of the lease into the files of its recording', async () => {
  const secret = 'hidden-secret-1234';
  const url = new URL(browser.url);
  url.search = `?token=${secret}`;
  await using own = new BrowserPool('with-secret', { service: cdp(url.href) });
  const run = await withPooledBrowser(own, async ({ page }) => void (await page.goto(PAGE)), {
    ...RECORD,
    recording: { folder },
  });
  const { own: path, files } = readReplay(run.replays[0]!);
  for (const file of files) expect(readFileSync(join(path, file)).includes(secret)).toBe(false);
});

it('shows the calls of the library and what failed in them, without what was typed, and the commands of a raw client', async () => {
  const typed = 'typed-secret-5678';
  const error: unknown = await withPooledBrowser(
    pool,
    async ({ page }) => {
      await page.goto('data:text/html,<input id=name><input id=pin type=password>');
      await page.fill('#name', typed);
      await page.fill('#pin', typed);
      await page.getByText('Pay').click({ timeout: 300 });
    },
    { ...RECORD, recording: { folder } },
  ).catch((reason: unknown) => reason);
  const { facts, own, files } = readReplay(runOf(error)!.replays[0]!);
  expect(facts.masked).toBe('covered');
  const calls = facts.timeline.filter(({ kind }) => kind === 'call');
  expect(calls.map(({ text }) => text)).toEqual([
    expect.stringContaining('page.goto'),
    'page.fill("#name")',
    'page.fill("#pin")',
    expect.stringContaining('Pay'),
  ]);
  expect(calls.at(-1)).toMatchObject({ status: expect.stringContaining('Timeout 300ms exceeded') as string });
  expect(calls[0]!.took).toBeGreaterThanOrEqual(0);
  for (const file of files) expect(readFileSync(join(own, file)).includes(typed)).toBe(false);
});

it('leaves out pictures of a page with a password over WebDriver BiDi alone, and says so', async () => {
  await using local = await startLocalPool();
  const { baseUrl, token } = local;
  const grant: typeof kernel.grant = (...from) => ({ ...kernel.grant(...from), cdpUrl: undefined });
  await using own = new BrowserPool('default', { service: { ...kernel, grant }, baseUrl, token });
  const run = await withPuppeteer.withPooledBrowser(
    own,
    async ({ page }) => {
      await page.goto('data:text/html,<input type=password>');
      await sleep(1_000);
    },
    { ...RECORD, protocol: 'bidi', recording: { folder, by: 'client' } },
  );
  const replay = run.replays.find(({ recorded_by }) => recorded_by === 'client');
  expect(readReplay(replay!).facts.masked).toBe('left-out');
});

it('writes one file that contains all, and a list of the folder', async () => {
  const own = join(folder, 'single');
  const run = await withPooledBrowser(pool, async ({ page }) => void (await page.goto(PAGE)), {
    ...RECORD,
    name: 'ticket',
    recording: { folder: own, single: true },
  });
  const { files, facts } = readReplay(run.replays[0]!);
  expect(files).toEqual(['index.html', 'recording.jsonl', 'replay.json']);
  expect((facts as unknown as { files: { video: string } }).files.video).toMatch(/^data:video\/webm;base64,/);
  expect(readFileSync(join(own, 'replays.html'), 'utf8')).toContain('ticket');
});

it('shows why something failed: a request without a response, and a dialog', async () => {
  await using site = await Site.open(({ url }, response) => {
    if (url === '/orders') return;
    response.setHeader('content-type', 'text/html');
    response.end('<link rel=icon href=data:,><button onclick="confirm(`Really?`)">Delete</button>');
  });
  const error: unknown = await withPooledBrowser(
    pool,
    async ({ page }) => {
      await page.goto(site.url);
      await page.click('button');
      await page.evaluate(() => void fetch('/orders'));
      await page.getByText('2 orders').waitFor({ timeout: 1_000 });
    },
    { ...RECORD, recording: { folder } },
  ).catch((reason: unknown) => reason);
  const { facts } = readReplay(runOf(error)!.replays[0]!);
  const told = facts.timeline.map(({ kind, text, status }) => `${kind} ${text} ${status ?? ''}`);
  expect(told).toContainEqual(expect.stringMatching(/^request-failed \S+\/orders no response yet, after \d/));
  expect(told).toEqual(
    expect.arrayContaining(['dialog confirm: Really? ', 'dialog It was dismissed. ']) as string[],
  );
});

it("records a lease of baseUrl: 'local' with its calls and its failure, and names the service", async () => {
  await using local = new BrowserPool('shop', { baseUrl: 'local', local: { size: 1, recordings: folder } });
  const fails = async ({ page }: { page: { goto(url: string): Promise<unknown> } }) => {
    await page.goto(PAGE);
    throw new Error('The cart is empty.');
  };
  const error: unknown = await withPooledBrowser(local, fails as never, RECORD).catch(
    (reason: unknown) => reason,
  );
  const { replays, moment } = runOf(error)!;
  expect(replays).toMatchObject([{ recorded_by: 'client' }]);
  expect(moment).toMatch(`${replays[0]!.replay_view_url}#t=`);
  const { facts, own } = readReplay(replays[0]!);
  expect(own).toContain(folder);
  expect(facts).toMatchObject({ service: 'local', result: 'failed' });
  expect(facts.timeline.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['call', 'failed']));
});
