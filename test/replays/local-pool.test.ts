import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { DRIVERS } from '../support/drivers.js';
import { titled, useLocalPool } from '../support/local.js';

const used = useLocalPool({ pools: [{ name: 'test', size: 1, headless: true }] });

/** What a WebM file begins with. */
const EBML = '1a45dfa3';

it.each(DRIVERS)(
  'records a run on the local pool, with a film to download: $name',
  async ({ run }) => {
    const { session, replays, replayStatus, cleanupErrors } = await run(
      used.pool,
      async ({ page }) => {
        await page.goto(titled('recorded'));
        return page.title();
      },
      { replays: 'record', replaysTimeout: 60_000 },
    );
    expect({ replayStatus, cleanupErrors }).toEqual({ replayStatus: 'ready', cleanupErrors: [] });
    expect(replays).toHaveLength(1);
    const { replay_id: id, replay_view_url: link, finished_at } = replays[0]!;
    expect(URL.canParse(link!)).toBe(true);
    expect(finished_at).toBeTypeOf('string');
    const folder = await mkdtemp(join(tmpdir(), 'film-'));
    try {
      const film = join(folder, 'film.webm');
      const { bytes, type } = await used.pool.downloadReplay(session.session_id, id!, film);
      expect(type).toBe('video/webm');
      expect(bytes).toBeGreaterThan(300);
      const content = await readFile(film);
      expect(content.subarray(0, 4).toString('hex')).toBe(EBML);
    } finally {
      await rm(folder, { recursive: true });
    }
  },
  120_000,
);
