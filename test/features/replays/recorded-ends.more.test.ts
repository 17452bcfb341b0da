import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BrowserPool } from '../../../src/index.js';
import { withPooledBrowser } from '../../../src/playwright.js';
import { cdp } from '../../../src/services.js';
import type { ReplayFacts } from '../../../src/recorder/page/replay-page.js';
import { savedFacts } from '../../local/replays/support.js';
import { start } from '../../process/support.js';
import { runHere } from '../../cli/support.js';
import { startChromium } from '../../support/chromium.js';
import { kill, processesOf } from '../../support/processes.js';
import { SLOW_START } from '../../support/program.js';
import { COMPLETE } from './support.js';

const folder = mkdtempSync(join(tmpdir(), 'recorded-ends-'));
let browser: Awaited<ReturnType<typeof startChromium>>;
beforeAll(async () => {
  browser = await startChromium();
});
afterAll(async () => {
  await browser[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** The only recording in a folder of its own, as soon as it has these files. */
async function recordingIn(own: string, ...files: string[]) {
  const path = () =>
    join(
      own,
      readdirSync(own).find((name) => name.startsWith('20'))!,
    );
  await expect.poll(() => readdirSync(path()).toSorted(), SLOW_START).toEqual(files.toSorted());
  return { path: path(), facts: savedFacts(join(path(), 'index.html')) as unknown as ReplayFacts };
}

const UNFINISHED = ['frames', 'index.html', 'recording.jsonl', 'video.webm.part'];
const helpers = () =>
  processesOf(process.env['TMPDIR']!).filter(({ command }) => command.includes('recording-process'));

describe('what was recorded until then is a video', () => {
  it.each(['SIGTERM', 'SIGINT', 'SIGKILL', 'exit', 'throw'] as const)('after %s', async (how) => {
    const own = join(folder, how);
    const program = start('recording', [browser.url, own, how]);
    await program.prints(/shown/);
    if (how.startsWith('SIG')) program.child.kill(how as NodeJS.Signals);
    await program.exit;
    const { facts } = await recordingIn(own, ...COMPLETE);
    expect(facts).toMatchObject({ state: 'ready', pool: 'shop' });
    expect(facts.video!.duration).toBeGreaterThan(500);
    expect(facts.timeline.some(({ text }) => text.includes('Shop'))).toBe(true);
    await expect.poll(helpers, SLOW_START).toEqual([]);
  });
});

it('can be repaired if all its processes were killed, and only then', async () => {
  const own = join(folder, 'repaired');
  const program = start('recording', [browser.url, own, 'hang']);
  await program.prints(/shown/);
  await expect.poll(helpers, SLOW_START).toHaveLength(1);
  // Another program's folder, and one that only looks like ours.
  const { path } = await recordingIn(own, ...UNFINISHED);
  const running = await runHere(['replays', '--repair', own]);
  expect(running).toMatchObject({ code: 0, stderr: expect.stringContaining('No recording') as string });
  for (const { pid } of helpers()) process.kill(pid, 'SIGKILL');
  program.child.kill('SIGKILL');
  await program.exit;
  await recordingIn(own, ...UNFINISHED);
  writeFileSync(join(own, 'notes.txt'), 'mine');
  const { code, stdout } = await runHere(['replays', '--repair', own]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('a video') as string });
  const { facts } = await recordingIn(own, ...COMPLETE);
  expect(facts.failure).toContain('ended before the recording did');
  expect(stdout).toContain(path.split('/').at(-1));
  expect(readFileSync(join(own, 'notes.txt'), 'utf8')).toBe('mine');
});

describe('the video is written', () => {
  const NONE = { CHROME_PATH: '/nonexistent/chromium', PATH: '/nonexistent' };
  const ffmpeg = (process.env['PATH'] ?? '').split(':').find((path) => {
    try {
      return readdirSync(path).includes('ffmpeg');
    } catch {
      return false;
    }
  });

  it('by the leased browser, if this machine has neither Chromium nor ffmpeg', async () => {
    const own = join(folder, 'leased');
    const program = start('recording', [browser.url, own, 'return'], NONE);
    expect(await program.ended).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('ready 0') as string,
    });
    const { facts } = await recordingIn(own, ...COMPLETE);
    expect(facts.video!.size).toBeGreaterThan(1_000);
  });

  it.runIf(ffmpeg !== undefined)('by ffmpeg, if this machine has no Chromium', async () => {
    const own = join(folder, 'ffmpeg');
    const program = start('recording', [browser.url, own, 'return'], { ...NONE, PATH: ffmpeg! });
    expect(await program.ended).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('ready 0') as string,
    });
    const { facts } = await recordingIn(own, ...COMPLETE);
    expect(facts.video!.size).toBeGreaterThan(1_000);
  });

  it('by nothing after SIGTERM without any of them: the page plays the pictures', async () => {
    const own = join(folder, 'pictures');
    const program = start('recording', [browser.url, own, 'hang'], NONE);
    await program.prints(/shown/);
    program.child.kill('SIGTERM');
    await program.exit;
    const { facts } = await recordingIn(
      own,
      'index.html',
      'pictures',
      'poster.jpg',
      'recording.jsonl',
      'replay.json',
    );
    expect(facts.video).toBeUndefined();
    expect(facts.pictures!.frames.length).toBeGreaterThan(0);
  });
});

it('has pictures if the process that writes the video is killed, and a video of the next lease', async () => {
  await using pool = new BrowserPool('shop', { service: cdp(browser.url) });
  const record = async (isKilled: boolean) => {
    const { replays, replayStatus, cleanupErrors } = await withPooledBrowser(
      pool,
      async ({ page }) => {
        await page.goto('data:text/html,<h1>Shop</h1>');
        await page.waitForTimeout(500);
        if (isKilled) helpers().forEach(kill);
      },
      { replays: 'record', replaysTimeout: 120_000, recording: { folder: join(folder, 'killed') } },
    );
    expect({ replayStatus, cleanupErrors }).toEqual({ replayStatus: 'ready', cleanupErrors: [] });
    return savedFacts(fileURLToPath(replays[0]!.replay_view_url!)) as unknown as ReplayFacts;
  };
  const { video, pictures } = await record(true);
  expect(video).toBeUndefined();
  expect(pictures!.frames.length).toBeGreaterThan(0);
  expect((await record(false)).video!.size).toBeGreaterThan(1_000);
  expect(helpers()).toHaveLength(1);
});
