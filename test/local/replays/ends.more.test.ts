import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { startLocalPool, type LocalPoolEvent, type LocalPoolOptions } from '../../../src/local.js';
import { Api, startApi } from '../support.js';
import { borrow, drive, NOISE, RAINBOW, Replays } from './support.js';

const folder = mkdtempSync(join(tmpdir(), 'videos-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Starts a pool and collects its events. */
async function observed(options: LocalPoolOptions = {}): Promise<{ api: Api; events: LocalPoolEvent[] }> {
  const events: LocalPoolEvent[] = [];
  return {
    api: await startApi({
      pools: [{ timeoutSeconds: 600 }],
      ...options,
      onLog: (event) => events.push(event),
    }),
    events,
  };
}

it.each([
  ['released', 'lease-ended', (api: Api, session) => api.release(session)],
  ['released without reuse', 'lease-ended', (api: Api, session) => api.release(session, false)],
  ['deleted', 'lease-ended', (api: Api, session) => api.call('DELETE', `/browsers/${session.session_id}`)],
  ['killed', 'browser-gone', (_api: Api, _session, pid) => process.kill(pid, 'SIGKILL')],
] as [string, string, (api: Api, session: Awaited<ReturnType<typeof borrow>>, pid: number) => unknown][])(
  'keeps the video of a browser that is %s during the recording',
  async (_what, reason, end) => {
    const { api, events } = await observed();
    const replays = new Replays(api);
    const session = await borrow(api);
    const started = events.find((event) => event.type === 'browser-started')!;
    const id = await replays.start(session);
    await drive(session, (page) => page.goto(RAINBOW));
    await end(api, session, started.pid);
    await replays.video(session, id);
    expect(await replays.list(session)).toMatchObject([{ replay_id: id, finished_at: expect.any(String) }]);
    const finished = events.find((event) => event.type === 'recording-finished');
    expect([reason, 'lease-ended']).toContain(finished?.reason);
    expect(finished?.milliseconds).toBeGreaterThan(0);
  },
);

it('stops and has a video although the page is unresponsive', async () => {
  const { api, events } = await observed();
  const replays = new Replays(api);
  const session = await borrow(api);
  const id = await replays.start(session);
  await drive(session, async (page) => {
    await page.goto(RAINBOW);
    page.evaluate('for (;;);').catch(() => {});
    expect(await replays.stop(session, id)).toBe(204);
  });
  await replays.video(session, id);
  expect(events.find((event) => event.type === 'recording-finished')?.reason).toBe('stopped');
});

it('ends after the maximum duration', async () => {
  const { api, events } = await observed();
  const replays = new Replays(api);
  const session = await borrow(api);
  let video: Buffer | undefined;
  // On a busy machine, a short recording may have no frame, and thus no video.
  for (const max_duration_in_seconds of [4, 20, 60]) {
    const id = await replays.start(session, { max_duration_in_seconds });
    video = await replays.video(session, id).catch(() => undefined);
    const ends = events.filter((event) => event.type === 'recording-finished');
    expect(ends.at(-1)).toMatchObject({ replayId: id, reason: 'max-duration' });
    expect(await replays.stop(session, id)).toBe(204);
    if (video) break;
  }
  expect(video).toBeDefined();
});

it('ends at the size limit, and keeps the video until then', async () => {
  const { api, events } = await observed({ recording: { maxBytes: 30_000 } });
  const replays = new Replays(api);
  const session = await borrow(api);
  const id = await replays.start(session);
  await drive(session, async (page) => {
    await page.goto(RAINBOW);
    await replays.video(session, id);
  });
  expect(events.find((event) => event.type === 'recording-finished')?.reason).toBe('disk-limit');
});

it('removes the oldest videos when all videos exceed the size limit', async () => {
  const limit = 3 * 1024 * 1024;
  const { api, events } = await observed({ recording: { maxBytes: limit, maxTotalBytes: limit } });
  const replays = new Replays(api);
  const session = await borrow(api);
  const ids: string[] = [];
  await drive(session, async (page) => {
    await page.goto(NOISE);
    // Both grow up to the limit, so there is no room for the first video beside the second.
    for (let count = 0; count < 2; count++) {
      ids.push(await replays.start(session));
      await replays.video(session, ids.at(-1)!);
    }
  });
  const ends = events.filter((event) => event.type === 'recording-finished');
  expect(ends.map(({ reason }) => reason)).toEqual(['disk-limit', 'disk-limit']);
  expect((await replays.list(session)).map(({ replay_id }) => replay_id)).toEqual([ids[1]]);
  expect((await replays.get(session, ids[0]!)).status).toBe(404);
});

it('keeps as many of the last videos as the option says', async () => {
  const { api } = await observed({ recording: { keep: 2 } });
  const replays = new Replays(api);
  const session = await borrow(api);
  const ids: string[] = [];
  for (let count = 0; count < 3; count++) {
    const id = await replays.start(session);
    await replays.stop(session, id);
    await replays.video(session, id);
    ids.push(id);
  }
  expect((await replays.list(session)).map(({ replay_id }) => replay_id)).toEqual(ids.slice(1));
  expect((await replays.get(session, ids[0]!)).status).toBe(404);
});

it('leaves only the videos in the folder of the option', async () => {
  const before = temporaryFolders();
  const pool = await startLocalPool({ recording: { folder } });
  const api = new Api(pool);
  const id = await new Replays(api).start(await api.lease());
  await pool.close();
  expect(readdirSync(folder)).toEqual([`${id}.webm`]);
  // For its owner only.
  expect(statSync(join(folder, `${id}.webm`)).mode & 0o777).toBe(0o600);
  expect(temporaryFolders()).toEqual(before);
});

it('leaves no files without the option', async () => {
  const before = temporaryFolders();
  const pool = await startLocalPool();
  const api = new Api(pool);
  await new Replays(api).start(await api.lease());
  expect(temporaryFolders().length).toBe(before.length + 1);
  await pool.close();
  expect(temporaryFolders()).toEqual(before);
});

function temporaryFolders(): string[] {
  return readdirSync(tmpdir()).filter((name) => name.startsWith('pooled-browser-replays-'));
}
