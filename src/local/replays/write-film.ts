import type { FilmFile } from './film-file.js';
import { layOut } from './film-frames.js';
import { FILM_TYPE, FilmTrack } from './film-track.js';
import type { Film } from './local-replay.js';
import { readFrames } from './spool.js';
import type { StudioEncoder } from './studio-encoder.js';

/** What a film is made of. */
export interface FilmOrder {
  /** The spool with its frames. */
  readonly frames: string;
  readonly file: FilmFile;
  /** In milliseconds. */
  readonly length: number;
  readonly framesPerSecond: number;
}

/** Bytes of film for a byte of frames: plain colours that change take 1.4, text and photographs 0.1 to 0.2. */
const MOST_PER_BYTE = 1.5;

/** Bytes of film for a millisecond: noise of 1280 x 720 pixels takes 205, text 90. */
const MOST_PER_MILLISECOND = 350;

/** How large the film of so many bytes of frames and of this length can become; measured, and a good deal more. */
export function largestFilm(frameBytes: number, length: number): number {
  return Math.min(frameBytes * MOST_PER_BYTE, length * MOST_PER_MILLISECOND);
}

/** Makes a film of a spool's frames, one frame in memory at a time; nothing when it holds none. */
export async function writeFilm(order: FilmOrder, encoder: StudioEncoder): Promise<Film | undefined> {
  const { file, length, framesPerSecond } = order;
  const frames = layOut(readFrames(order.frames), length);
  try {
    const first = await frames.next();
    if (first.done) return undefined;
    const picture = await encoder.begin(first.value.jpeg, framesPerSecond);
    const size = await file.fill(async (stream) => {
      const track = await FilmTrack.begin(stream);
      try {
        await track.add(await encoder.encode(first.value));
        for await (const frame of frames) await track.add(await encoder.encode(frame));
        await track.add(await encoder.finish());
        await track.end();
      } catch (error) {
        await track.cancel();
        throw error;
      }
    });
    return { path: file.path, type: FILM_TYPE, size, duration: length, ...picture };
  } finally {
    // A generator that nobody asks any more would keep the spool open.
    await frames.return(undefined);
  }
}
