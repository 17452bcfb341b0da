import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { layOut, type FilmFrame } from '../../../src/local/replays/film-frames.js';
import { FrameSampler } from '../../../src/local/replays/frame-sampler.js';
import type { Frame } from '../../../src/local/replays/frame.js';

it('shows the first frame from the start and the last until the end', async () => {
  expect(await laidOut([300, 1_000], 2_500)).toEqual([
    { at: 0, duration: 1_000, shows: 300, isKey: true },
    { at: 1_000, duration: 1_500, shows: 1_000, isKey: false },
  ]);
});

it('repeats a frame that is shown for long, so that a player finds one wherever it looks', async () => {
  const frames = await laidOut([0], 22_000);
  expect(frames.map(({ at, duration, isKey }) => [at, duration, isKey])).toEqual([
    [0, 10_000, true],
    [10_000, 10_000, false],
    [20_000, 2_000, false],
  ]);
});

it('has frames that need no other every 5 s in what moves, every 5 min in what is still', async () => {
  const moving = await laidOut(
    Array.from({ length: 120 }, (_, index) => index * 100),
    12_000,
  );
  const still = await laidOut([0], 900_000);
  const keys = [moving, still].map((frames) => frames.filter(({ isKey }) => isKey).map(({ at }) => at));
  expect(keys).toEqual([
    [0, 5_000, 10_000],
    [0, 300_000, 600_000],
  ]);
});

it('makes nothing of no frames', async () => {
  expect(await laidOut([], 1_000)).toEqual([]);
});

it('lets no more frames through than its rate, of each interval the last', () => {
  const through: number[] = [];
  const sampler = new FrameSampler(100, ({ at }) => through.push(at));
  for (let at = 0; at < 1_000; at += 17) sampler.add(frame(at));
  sampler.flush();
  expect(through).toHaveLength(10);
  expect(through[0]).toBe(85);
  expect(through.at(-1)).toBe(986);
});

function frame(at: number): Frame {
  return { at, jpeg: Buffer.from(String(at)) };
}

async function laidOut(times: number[], length: number) {
  const frames = (async function* () {
    for (const at of times) yield frame(at);
  })();
  const laid = (await Readable.from(layOut(frames, length)).toArray()) as FilmFrame[];
  return laid.map(({ jpeg, ...rest }) => ({ ...rest, shows: Number(jpeg) }));
}
