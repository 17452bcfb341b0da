import { expect, it } from 'vitest';
import { RecordingStore } from '../../../src/local/replays/recording-store.js';
import type { Recording } from '../../../src/local/replays/recording.js';

it('removes finished recordings to make room, and none that runs or whose video is being written', () => {
  const store = new RecordingStore({ folder: undefined, maxBytes: 100, maxTotalBytes: 100, keep: 10 });
  const running = { bytes: 80, frameBytes: 0 } as Recording;
  const finished = { bytes: 20, frameBytes: 0, finishedAt: new Date() } as Recording;
  for (const recording of [running, finished]) store.add(recording);
  expect(store.hasRoom(running, 20)).toBe(true);
  expect(store.list()).toEqual([running]);
  expect(store.hasRoom(running, 21)).toBe(false);
  expect(store.list()).toEqual([running]);
});
