import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { startLocalPool, type LocalPoolOptions } from '../../../src/local.js';
import type { BrowserSession } from '../../../src/index.js';
import { Api, drive, startApi } from '../support.js';
import { borrow, RAINBOW, Replays } from './support.js';

const folder = mkdtempSync(join(tmpdir(), 'videos-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Leases a browser of a new pool. */
async function begin(recording: LocalPoolOptions['recording'] = {}) {
  const api = await startApi({ pools: [{ timeoutSeconds: 600 }], recording });
  const ends = () => api.eventsOf('recording-finished');
  return { api, replays: new Replays(api), session: await borrow(api), ends };
}

it.each<[string, string, (api: Api, session: BrowserSession) => unknown]>([
  ['released without reuse', 'lease-ended', (api, session) => api.release(session, false)],
  ['killed', 'browser-gone', (api) => process.kill(api.eventsOf('browser-started')[0]!.pid, 'SIGKILL')],
])('keeps the video of a browser that is %s during the recording', async (_what, reason, end) => {
  const { api, replays, session, ends } = await begin();
  const id = await replays.start(session);
  await drive(session, (page) => page.goto(RAINBOW));
  await end(api, session);
  await replays.video(session, id);
  expect(await replays.list(session)).toMatchObject([{ replay_id: id, finished_at: expect.any(String) }]);
  expect([reason, 'lease-ended']).toContain(ends()[0]?.reason);
  expect(ends()[0]?.milliseconds).toBeGreaterThan(0);
});

it('stops and has a video although the page is unresponsive', async () => {
  const { replays, session, ends } = await begin();
  const id = await replays.start(session);
  await drive(session, async (page) => {
    await page.goto(RAINBOW);
    page.evaluate('for (;;);').catch(() => {});
    expect(await replays.stop(session, id)).toBe(204);
  });
  await replays.video(session, id);
  expect(ends()).toMatchObject([{ reason: 'stopped' }]);
});

it('ends after the maximum duration', async () => {
  const { replays, session, ends } = await begin();
  let video: Buffer | undefined;
  // On a busy machine, a short recording may have no frame, and thus no video.
  for (const max_duration_in_seconds of [4, 20, 60]) {
    const id = await replays.start(session, { max_duration_in_seconds });
    video = await replays.video(session, id).catch(() => undefined);
    expect(ends().at(-1)).toMatchObject({ replayId: id, reason: 'max-duration' });
    expect(await replays.stop(session, id)).toBe(204);
    if (video) break;
  }
  expect(video).toBeDefined();
});

it('ends at the size limit, and keeps the video until then', async () => {
  const { replays, session, ends } = await begin({ maxBytes: 30_000 });
  await drive(session, async (page) => {
    await page.goto(RAINBOW);
    await replays.video(session, await replays.start(session));
  });
  expect(ends()).toMatchObject([{ reason: 'disk-limit' }]);
});

it('keeps as many of the last videos as the option says, and the recordings that still run', async () => {
  const { replays, session } = await begin({ keep: 2 });
  const running = await replays.start(session);
  const ids: string[] = [];
  for (let count = 0; count < 3; count++) ids.push((await replays.record(session)).replay_id!);
  expect(await replays.ids(session)).toEqual([running, ...ids.slice(1)]);
  expect((await replays.get(session, ids[0]!)).status).toBe(404);
});

const COMPLETE = ['index.html', 'poster.jpg', 'recording.jsonl', 'replay.json', 'video.webm'];

it('leaves only the recordings in the folder of the option, and without it no files', async () => {
  const before = temporaryFolders();
  for (const recording of [{ folder }, {}]) {
    const pool = await startLocalPool({ recording });
    const api = new Api(pool);
    const id = await new Replays(api).start(await api.lease());
    // What a killed process leaves must be found: pictures of recordings that stay are beside them.
    expect(temporaryFolders().length).toBe(before.length + (recording.folder === undefined ? 1 : 0));
    await pool.close();
    expect(temporaryFolders()).toEqual(before);
    if (recording.folder === undefined) continue;
    const [name = ''] = readdirSync(folder).toSorted();
    expect(name.endsWith(id.slice(0, 8))).toBe(true);
    expect(readdirSync(join(folder, name))).toEqual(COMPLETE);
    // For its owner only.
    expect(statSync(join(folder, name)).mode & 0o777).toBe(0o700);
    expect(statSync(join(folder, name, 'video.webm')).mode & 0o777).toBe(0o600);
  }
  expect(readdirSync(folder).toSorted().slice(1)).toEqual(['replays.html']);
});

function temporaryFolders(): string[] {
  return readdirSync(tmpdir()).filter((name) => name.startsWith('pooled-browser-replays-'));
}
