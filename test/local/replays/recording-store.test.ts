import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { RecordingStore } from '../../../src/local/replays/recording-store.js';
import type { Recording } from '../../../src/local/replays/recording.js';
import type { Video } from '../../../src/local/replays/video-file.js';

const folder = mkdtempSync(join(tmpdir(), 'store-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('removes the oldest videos, and their files, until there is room', async () => {
  const [oldest, older, newest] = [finished('a', 30), finished('b', 30), finished('c', 30)];
  const store = storeOf({}, oldest, older, newest);
  expect(store.hasRoom(newest, 10)).toBe(true);
  expect(store.list()).toEqual([oldest, older, newest]);
  expect(store.hasRoom(newest, 50)).toBe(true);
  expect(store.list()).toEqual([newest]);
  await expect
    .poll(() => [oldest, older, newest].map(({ video }) => existsSync(video!.path)))
    .toEqual([false, false, true]);
});

it('does not remove a recording that runs, or whose video is being written', () => {
  const [running, done] = [recorded('running', 80), finished('d', 10)];
  const store = storeOf({}, running, done);
  expect(store.hasRoom(running, 30)).toBe(false);
  expect(store.list()).toEqual([running]);
});

it('refuses more bytes than one recording may have', () => {
  const running = recorded('running', 10, { frameBytes: 10 });
  const store = storeOf({ maxBytes: 30 }, running, finished('g', 10));
  expect(store.hasRoom(running, 20)).toBe(true);
  expect(store.hasRoom(running, 21)).toBe(false);
  expect(store.list()).toHaveLength(2);
});

it('keeps the last finished recordings, and does not count others', () => {
  const [running, one, two] = [recorded('running', 1), finished('e', 1), finished('f', 1)];
  const store = storeOf({ keep: 1 }, running, one, two);
  store.prune();
  expect(store.list()).toEqual([running, two]);
});

function storeOf(limits: { maxBytes?: number; keep?: number }, ...recordings: Recording[]): RecordingStore {
  const store = new RecordingStore({ folder, maxBytes: 100, maxTotalBytes: 100, keep: 10, ...limits });
  for (const recording of recordings) store.add(recording);
  return store;
}

function recorded(replayId: string, bytes: number, ...done: Partial<Recording>[]): Recording {
  return Object.assign({ replayId, sessionId: 's', bytes, frameBytes: 0 }, ...done) as Recording;
}

function finished(replayId: string, bytes: number): Recording {
  const path = join(folder, replayId);
  writeFileSync(path, '');
  return recorded(replayId, bytes, { finishedAt: new Date(), video: { path } as Video });
}
