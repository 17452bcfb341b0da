import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'puppeteer-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { BrowserPool, runOf, type RunEvent } from '../../../src/index.js';
import { withPooledBrowser } from '../../../src/puppeteer.js';
import { startApi, type Api } from '../../local/support.js';
import { usePerson } from '../../local/pages/support.js';
import { start } from '../../process/support.js';
import { describeWithFirefox } from '../../support/firefox.js';
import { SLOW_START, variablesOf } from '../../support/program.js';
import { COMPLETE, openReplay, readReplay, RECORD, told } from './support.js';

const PAGE = 'data:text/html,<title>Shop</title><h1>Shop</h1><button>Buy</button>';

describeWithFirefox('a lease over WebDriver BiDi alone', () => {
  const folder = mkdtempSync(join(tmpdir(), 'over-bidi-'));
  const person = usePerson();
  let firefox: Api;
  let pool: BrowserPool;
  beforeAll(async () => {
    firefox = await startApi({ browser: 'firefox' });
    const { baseUrl, token } = firefox.pool;
    pool = new BrowserPool('default', { baseUrl, token });
  });
  afterAll(async () => {
    await pool?.close();
    rmSync(folder, { recursive: true });
  });

  /** Records a lease that shows a page for a while. @returns Its run, also if it failed. */
  async function record(name: string, then: (page: Page) => unknown = () => {}, recording: object = {}) {
    const events: RunEvent[] = [];
    const onEvent = (event: RunEvent) => void events.push(event);
    const visit = async ({ page }: { page: Page }) => {
      await page.goto(PAGE);
      await page.click('button');
      // Pictures are taken at a tenth of the time.
      await sleep(1_500);
      return then(page);
    };
    const options = { ...RECORD, protocol: 'bidi', name, recording: { folder, ...recording }, onEvent };
    const running = withPooledBrowser(pool, visit, options as object);
    const error: unknown = await running.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    const run = error === undefined ? await running : runOf(error)!;
    return { run, error, events };
  }

  it('has a replay by this process with its calls, pages and a video, after the service refused to record', async () => {
    const { run } = await record('buys');
    expect(run).toMatchObject({ replayStatus: 'ready', cleanupErrors: [], released: 'reused' });
    expect(run.replays).toMatchObject([{ name: 'buys', recorded_by: 'client' }]);
    const { facts, files } = readReplay(run.replays[0]!);
    expect(files).toEqual(COMPLETE);
    expect(facts).toMatchObject({ state: 'ready', result: 'succeeded', leaseName: 'buys' });
    expect(facts.video!.size).toBeGreaterThan(1_000);
    expect(told(facts, 'navigation', 'page-opened').join()).toContain('Shop');
    await openReplay(person, run.replays[0]!.replay_view_url!, 'buys');
  });

  it('has the moment of the failure of a callback that throws, after its calls', async () => {
    const pays = () => Promise.reject(new Error('The cart is empty.'));
    const { run, error } = await record('fails', pays, { by: 'client' });
    expect(error).toMatchObject({ message: 'The cart is empty.' });
    expect(run).toMatchObject({ replayStatus: 'ready', cleanupErrors: [] });
    const { facts, files } = readReplay(run.replays[0]!);
    expect(files).toEqual(COMPLETE);
    expect(facts.result).toBe('failed');
    expect(told(facts, 'call', 'failed')).toEqual([
      expect.stringContaining('call page.goto'),
      'call page.click("button")',
      'failed The cart is empty.',
    ]);
    const page = await openReplay(person, run.moment!, 'fails');
    await page.getByRole('link', { name: /The cart is empty/ }).waitFor();
  });

  it('has a video of what Firefox showed until it was lost', async () => {
    const isLost = async (page: Page) => {
      process.kill(firefox.eventsOf('browser-started').at(-1)!.pid, 'SIGKILL');
      await page.waitForSelector('never', { timeout: 60_000 });
    };
    const { run, error } = await record('lost', isLost, { by: 'client' });
    expect(error).toMatchObject({ code: 'ERR_BROWSER_LOST' });
    expect(run.replayStatus).toBe('ready');
    const { facts, files } = readReplay(run.replays[0]!);
    expect(files).toEqual(COMPLETE);
    expect(facts).toMatchObject({ state: 'ready', result: 'failed', leaseName: 'lost' });
    await openReplay(person, run.replays[0]!.replay_view_url!, 'lost');
  });

  it('has its result, and an error beside it, if the folder cannot be written', async () => {
    const closed = join(folder, 'closed');
    // A file stands in its place: also root can't create the folder.
    writeFileSync(closed, '');
    const { run, error, events } = await record('closed', () => 'value', { by: 'client', folder: closed });
    expect(error).toBeUndefined();
    expect(run).toMatchObject({ value: 'value', replays: [], replayStatus: 'unavailable' });
    expect(run.cleanupErrors.map(String).join()).toContain(closed);
    expect(events.filter(({ type }) => type === 'recording-unavailable')).toHaveLength(1);
  });

  it('has a video of what was shown until SIGTERM ended the process', async () => {
    const own = join(folder, 'stopped');
    const program = start('recording-firefox', [own], variablesOf(firefox.pool));
    await program.prints(/shown/);
    await program.end('SIGTERM');
    const link = () => {
      const name = readdirSync(own).find((one) => one.startsWith('20'))!;
      return new URL(`file://${join(own, name, 'index.html')}`).href;
    };
    await expect.poll(() => readReplay({ replay_view_url: link() }).files, SLOW_START).toEqual(COMPLETE);
    const { facts } = readReplay({ replay_view_url: link() });
    expect(facts).toMatchObject({ state: 'ready', leaseName: 'stopped' });
    expect(facts.timeline.at(-1)).toMatchObject({ kind: 'recording-ended' });
    await openReplay(person, link(), 'stopped');
  });
});
