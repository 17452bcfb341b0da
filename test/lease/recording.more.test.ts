import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { VideoPlayer, hue, PAINTED, STILL } from '../local/replays/support.js';
import { DRIVERS } from '../support/drivers.js';
import { useLocalPool } from '../support/local.js';

const used = useLocalPool({ pools: [{ name: 'test', size: 1, headless: true }] });

const player = new VideoPlayer();
afterAll(() => player.close());

it.each(DRIVERS)('records a run on the local pool, whose video can be downloaded: $name', async ({ run }) => {
  const { session, replays, replayStatus, cleanupErrors } = await run(
    used.pool,
    async ({ page }) => {
      await page.goto(STILL);
      await page.evaluate(PAINTED);
    },
    { replays: 'record', replaysTimeout: 150_000 },
  );
  expect({ replayStatus, cleanupErrors }).toEqual({ replayStatus: 'ready', cleanupErrors: [] });
  expect(replays).toHaveLength(1);
  const { replay_id: id, replay_view_url: link, finished_at } = replays[0]!;
  expect(URL.canParse(link!)).toBe(true);
  expect(finished_at).toBeTypeOf('string');
  const folder = await mkdtemp(join(tmpdir(), 'video-'));
  try {
    const path = join(folder, 'video.webm');
    const { bytes, type } = await used.pool.downloadReplay(session.session_id, id!, path);
    expect(type).toBe('video/webm');
    const content = await readFile(path);
    expect(content.length).toBe(bytes);
    const { duration, colours } = await player.play(content, [1]);
    expect(duration).toBeGreaterThan(0);
    expect(colours.map(hue)).toEqual(['blue']);
  } finally {
    await rm(folder, { recursive: true });
  }
});
