import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Replay } from '../../../src/index.js';
import type { ReplayFacts } from '../../../src/recorder/page/replay-page.js';
import { faults, type Person } from '../../local/pages/support.js';
import { savedFacts } from '../../local/replays/support.js';

/** A busy machine writes the video late. */
export const RECORD = { replays: 'record', replaysTimeout: 120_000 } as const;

/** The files of a recording with a video. */
export const COMPLETE = ['index.html', 'poster.jpg', 'recording.jsonl', 'replay.json', 'video.webm'];

/** The page and the files of a replay. */
export function readReplay({ replay_view_url: link }: Pick<Replay, 'replay_view_url'>) {
  const path = fileURLToPath(link!.replace(/#.*/, ''));
  const own = join(path, '..');
  return { facts: savedFacts(path) as unknown as ReplayFacts, files: readdirSync(own).toSorted(), own };
}

/** The entries of a timeline of these kinds, each in one line. */
export function told({ timeline }: ReplayFacts, ...kinds: readonly string[]): string[] {
  return timeline.filter(({ kind }) => kinds.includes(kind)).map(({ kind, text }) => `${kind} ${text}`);
}

/** Opens a replay as a person does. Fails if it has another name, shows an error, or if its video does not play. */
export async function openReplay(person: Person, link: string, name: string): Promise<Page> {
  const page = await person.open(link);
  await page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
  expect(await page.title()).toBe(`${name} · Replay`);
  const [, seconds = '0'] = /#t=([\d.]+)$/.exec(link) ?? [];
  await expect.poll(() => currentTime(page)).toBeCloseTo(Number(seconds), 1);
  // A video that ends while this looks at it begins again.
  await page.keyboard.press('Home');
  await page.getByRole('button', { name: 'Play', exact: true }).click();
  await expect.poll(() => currentTime(page)).toBeGreaterThan(0.1);
  expect(faults(page)).toEqual([]);
  return page;
}

/** The position of the video, in seconds. */
export function currentTime(page: Page): Promise<number> {
  return page.locator('video').evaluate((video: HTMLVideoElement) => video.currentTime);
}
