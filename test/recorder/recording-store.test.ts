import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { RecordingStore, type StoredRecording } from '../../src/recorder/recording-store.js';

it('removes finished recordings to make room, and none that runs or whose video is being written', () => {
  const store = new RecordingStore({ folder: undefined, maxBytes: 100, maxTotalBytes: 100, keep: 10 });
  const files = { poster: '', video: '' };
  const running = { bytes: 80, frameBytes: 0, files } as StoredRecording;
  const finished = { bytes: 20, frameBytes: 0, finishedAt: new Date(), files } as StoredRecording;
  for (const recording of [running, finished]) store.add(recording);
  expect(store.hasRoom(running, 20)).toBe(true);
  expect(store.list).toEqual([running]);
  expect(store.hasRoom(running, 21)).toBe(false);
  expect(store.list).toEqual([running]);
});

it('keeps recordings in a folder that git ignores, and removes the oldest of earlier processes first', async () => {
  const parent = mkdtempSync(join(tmpdir(), 'recordings-'));
  onTestFinished(() => rmSync(parent, { recursive: true }));
  const folder = join(parent, 'kept');
  const limits = { folder, maxBytes: 100, maxTotalBytes: 100, keep: 2 };
  expect(existsSync(folder)).toBe(false);
  const store = new RecordingStore(limits);
  const recording = recordingAt('2026-02-03T04:05:06.789Z', 'cart.spec');
  const { page, frames } = store.createFiles(recording);
  expect(basename(dirname(page!))).toBe('2026-02-03T04-05-06Z-cart.spec-abcdef01');
  expect(existsSync(dirname(page!))).toBe(true);
  // What is removed anyway need not be on the user's disk.
  expect(frames.startsWith(parent)).toBe(false);
  expect(readFileSync(join(folder, '.gitignore'), 'utf8')).toBe('*\n');
  writeFileSync(page!, 'x'.repeat(50));
  await store.close();

  // Neither is a recording.
  mkdirSync(join(folder, 'notes'));
  writeFileSync(join(folder, '2026-01-01.txt'), '');
  const next = new RecordingStore(limits);
  const later = Object.assign(recordingAt('2026-02-04T00:00:00.000Z', 'cart.spec'), {
    bytes: 10,
    frameBytes: 0,
  });
  const files = next.createFiles(later);
  next.add(Object.assign(later, { files, finishedAt: new Date() }));
  next.prune();
  expect(next.hasRoom(later, 40)).toBe(true);
  expect(existsSync(page!)).toBe(true);
  expect(next.hasRoom(later, 41)).toBe(true);
  expect(readdirSync(folder).toSorted()).toEqual(
    ['.gitignore', '2026-01-01.txt', basename(dirname(files.page!)), 'notes'].toSorted(),
  );
  await next.close();
});

function recordingAt(date: string, leaseName: string): StoredRecording {
  const session = { leaseName };
  return { replayId: 'abcdef0123456789', startedAt: new Date(date), session } as StoredRecording;
}
