import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { startLocalPool, type LocalPool, type LocalPoolEvent } from '../../../src/local.js';
import type { BrowserSession } from '../../../src/service/wire.js';
import { Api } from '../support.js';
import { Disk, whyNoDisks } from './disk.js';
import { VideoPlayer, drive, VIDEO_TIMEOUT, NOISE, Replays } from './support.js';

const player = new VideoPlayer();
afterAll(() => player.close());

const VIEWPORT = { width: 640, height: 480 };

describe.skipIf(whyNoDisks)(`a full disk${whyNoDisks ? `: ${whyNoDisks}` : ''}`, () => {
  it('ends the recording, whose video until then is kept and listed; the pool keeps working', async () => {
    const disk = mountedDisk(24);
    const events: LocalPoolEvent[] = [];
    await using pool = await observed(disk.folder, events);
    const api = new Api(pool);
    const session = await api.lease();
    const id = await recordUntilFull(api, session, disk, events);
    await expectVideo(api, session, id);
    expect(end(events, id)).toMatchObject({ reason: 'disk-full', bytes: expect.any(Number) });
    expect(end(events, id)).not.toHaveProperty('failure');

    // The video needed less space than was reserved.
    disk.fill();
    const refused = await new Replays(api).ask(session);
    expect(refused).toMatchObject({ status: 507, body: { code: 'insufficient_storage' } });
    expect(refused.body.message).toBe('The disk is full: there is no space for a video.');
    expect(disk.files()).toEqual([`${id}.webm`]);

    disk.makeRoom();
    await drive(session, async (page) => expect(await page.title()).toBe(''));
    const next = await new Replays(api).start(session);
    await new Replays(api).stop(session, next);
    await new Replays(api).video(session, next);
    expect(await api.release(session)).toBe(204);
  });

  it('loses no video, even if it also holds the frames and the browser profiles', async () => {
    const disk = mountedDisk(96);
    const before = process.env['TMPDIR'];
    process.env['TMPDIR'] = disk.folder;
    try {
      const events: LocalPoolEvent[] = [];
      await using pool = await observed(undefined, events);
      const api = new Api(pool);
      const session = await api.lease();
      const id = await recordUntilFull(api, session, disk, events);
      await expectVideo(api, session, id);
    } finally {
      process.env['TMPDIR'] = before;
    }
  });
});

function mountedDisk(megabytes: number): Disk {
  const disk = new Disk(megabytes);
  onTestFinished(() => disk.unmount());
  return disk;
}

function observed(folder: string | undefined, events: LocalPoolEvent[]): Promise<LocalPool> {
  const onLog = (event: LocalPoolEvent) => void events.push(event);
  return startLocalPool({
    pools: [{ viewport: VIEWPORT, timeoutSeconds: 600 }],
    recording: { folder },
    onLog,
  });
}

/** Records two seconds of noise, which is hard to compress; then something else fills the disk. */
async function recordUntilFull(
  api: Api,
  session: BrowserSession,
  disk: Disk,
  events: readonly LocalPoolEvent[],
): Promise<string> {
  return await drive(session, async (page) => {
    await page.goto(NOISE);
    const id = await new Replays(api).start(session);
    await sleep(2_000);
    disk.fill();
    await expect.poll(() => end(events, id), { timeout: VIDEO_TIMEOUT }).toBeDefined();
    return id;
  });
}

function end(events: readonly LocalPoolEvent[], id: string) {
  const isEnd = (event: LocalPoolEvent) => event.type === 'recording-finished' && event.replayId === id;
  return events.find(isEnd) as Extract<LocalPoolEvent, { type: 'recording-finished' }> | undefined;
}

/** The video plays to its end, the recording is listed as finished, and its page says why it ended. */
async function expectVideo(api: Api, session: BrowserSession, id: string): Promise<void> {
  const replays = new Replays(api);
  const video = await replays.video(session, id);
  const { duration, width, height, colours } = await player.play(video, [0.1, 0.9, 1]);
  expect(duration).toBeGreaterThan(2);
  expect([width, height]).toEqual([expect.any(Number), expect.any(Number)]);
  expect(colours).toHaveLength(3);
  const [listed] = await replays.list(session);
  expect(listed).toMatchObject({ replay_id: id, finished_at: expect.any(String) });
  const facts = await fetch(listed!.replay_view_url!.replace('/replay?', '/replay/facts?'));
  const { state, timeline } = (await facts.json()) as { state: string; timeline: { text: string }[] };
  expect(state).toBe('ready');
  expect(timeline.at(-1)?.text).toBe('The disk is full.');
}
