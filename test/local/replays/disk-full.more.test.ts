import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readdirSync, rmdirSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { BrowserSession } from '../../../src/index.js';
import { drive, startApi, type Api } from '../support.js';
import { VideoPlayer, VIDEO_TIMEOUT, NOISE, Replays } from './support.js';

const player = new VideoPlayer();
afterAll(() => player.close());

/** A small mounted disk that a test can fill. */
class Disk {
  readonly folder = mkdtempSync(join(tmpdir(), 'd-'));
  readonly #filler = join(this.folder, 'filler');

  constructor(megabytes: number) {
    const options = ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', this.folder];
    execFileSync('mount', options, { stdio: 'pipe' });
  }

  /** Uses all free space. */
  fill(): void {
    const file = openSync(this.#filler, 'a');
    const bytes = Buffer.alloc(64 * 1024);
    try {
      for (;;) writeSync(file, bytes);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    } finally {
      closeSync(file);
    }
  }

  freeSpace(): void {
    rmSync(this.#filler);
  }

  /** The files without the filler, and without the list of the recordings. */
  files(): string[] {
    return readdirSync(this.folder).filter((name) => name !== 'filler' && name !== 'replays.html');
  }

  unmount(): void {
    // Lazy: a process that ends may still have a file open.
    execFileSync('umount', ['--lazy', this.folder]);
    rmdirSync(this.folder);
  }
}

/** Why a test cannot mount disks on this machine, or undefined. */
const whyNoDisks = tryDisk();

function tryDisk(): string | undefined {
  if (process.platform !== 'linux') return 'skipped, because this is not Linux';
  if (process.getuid?.() !== 0) return 'skipped, because only root can mount disks';
  try {
    new Disk(1).unmount();
    return undefined;
  } catch (error) {
    return `skipped, because mounting fails (${(error as Error).message.trim()})`;
  }
}

describe.skipIf(whyNoDisks)(`a full disk${whyNoDisks ? `: ${whyNoDisks}` : ''}`, () => {
  it('ends the recording, whose video until then is kept and listed; the pool keeps working', async () => {
    const disk = mountedDisk(24);
    const { api, session } = await recordUntilFull(disk, disk.folder);
    const [end] = api.eventsOf('recording-finished');
    expect(end).toMatchObject({ reason: 'disk-full', bytes: expect.any(Number) });
    expect(end).not.toHaveProperty('failure');

    // The video needed less space than was reserved.
    disk.fill();
    const replays = new Replays(api);
    const refused = await replays.ask(session);
    expect(refused).toMatchObject({ status: 507, body: { code: 'insufficient_storage' } });
    expect(refused.body.message).toBe('The disk is full: there is no space for a video.');
    // The folder of the refused recording is removed after the response.
    await expect.poll(() => disk.files()).toHaveLength(1);
    expect(readdirSync(join(disk.folder, disk.files()[0]!))).toContain('video.webm');

    disk.freeSpace();
    await drive(session, async (page) => expect(await page.title()).toBe(''));
    await replays.video(session, (await replays.record(session)).replay_id!);
    expect(await api.release(session)).toBe(204);
    await api.pool.close();
  });

  it('loses no video, even if it also holds the frames and the browser profiles', async () => {
    const disk = mountedDisk(96);
    vi.stubEnv('TMPDIR', disk.folder);
    const { api } = await recordUntilFull(disk);
    await api.pool.close();
  });
});

function mountedDisk(megabytes: number): Disk {
  const disk = new Disk(megabytes);
  onTestFinished(() => disk.unmount());
  return disk;
}

/**
 * Records two seconds of noise, which is hard to compress; then something else fills the disk. The video plays to its
 * end, the recording is listed as finished, and its page says why it ended.
 */
async function recordUntilFull(disk: Disk, folder?: string): Promise<{ api: Api; session: BrowserSession }> {
  const pools = [{ viewport: { width: 640, height: 480 }, timeoutSeconds: 600 }];
  const api = await startApi({ pools, recording: { folder } });
  const replays = new Replays(api);
  const session = await api.lease();
  const id = await drive(session, async (page) => {
    await page.goto(NOISE);
    const id = await replays.start(session);
    await sleep(2_000);
    disk.fill();
    await expect
      .poll(() => api.eventsOf('recording-finished'), { timeout: VIDEO_TIMEOUT })
      .toMatchObject([{ replayId: id }]);
    return id;
  });
  const { duration, width, height, colours } = await player.play(
    await replays.video(session, id),
    [0.1, 0.9, 1],
  );
  expect(duration).toBeGreaterThan(2);
  expect([width, height]).toEqual([expect.any(Number), expect.any(Number)]);
  expect(colours).toHaveLength(3);
  expect(await replays.list(session)).toMatchObject([{ replay_id: id, finished_at: expect.any(String) }]);
  const { state, timeline } = await replays.facts(session, id);
  expect([state, timeline.at(-1)?.text]).toEqual(['ready', 'The disk is full.']);
  return { api, session };
}
