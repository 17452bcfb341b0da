import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { Film } from '../../../src/local/replays/local-replay.js';
import type { Recording } from '../../../src/local/replays/recording.js';
import { Shelf } from '../../../src/local/replays/shelf.js';

const folder = mkdtempSync(join(tmpdir(), 'shelf-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('removes the oldest films until there is room, and their files', async () => {
  const [oldest, older, newest] = [finished('a', 30), finished('b', 30), finished('c', 30)];
  const shelf = shelfOf(oldest, older, newest);
  expect(shelf.makeRoom(10, 100)).toBe(true);
  expect(shelf.list()).toEqual([oldest, older, newest]);
  expect(shelf.makeRoom(50, 100)).toBe(true);
  expect(shelf.list()).toEqual([newest]);
  await expect
    .poll(() => [oldest, older, newest].map(({ film }) => existsSync(film!.path)))
    .toEqual([false, false, true]);
});

it('removes nothing that is still recorded, or whose film is being written', () => {
  const [running, done] = [recorded('running', 80), finished('d', 10)];
  const shelf = shelfOf(running, done);
  expect(shelf.makeRoom(30, 100)).toBe(false);
  expect(shelf.list()).toEqual([running]);
});

it('keeps so many, and counts those only that are finished', () => {
  const [running, one, two] = [recorded('running', 1), finished('e', 1), finished('f', 1)];
  const shelf = shelfOf(running, one, two);
  shelf.keep(1);
  expect(shelf.list()).toEqual([running, two]);
});

function shelfOf(...recordings: Recording[]): Shelf {
  const shelf = new Shelf();
  for (const recording of recordings) shelf.add(recording);
  return shelf;
}

function recorded(replayId: string, bytes: number, ...done: Partial<Recording>[]): Recording {
  return Object.assign({ replayId, sessionId: 's', bytes }, ...done) as Recording;
}

function finished(replayId: string, bytes: number): Recording {
  const path = join(folder, replayId);
  writeFileSync(path, '');
  return recorded(replayId, bytes, { finishedAt: new Date(), film: { path } as Film });
}
