import type { Frame } from './frame.js';

/** A frame in its place in a film. */
export interface FilmFrame extends Frame {
  /** Milliseconds until the next one, or until the end. */
  readonly duration: number;
  /** Players seek to these. */
  readonly isKey: boolean;
}

/** A page may be still for minutes: a player that seeks into them looks for a frame near by. */
const LONGEST_STILL = 10_000;

/** Milliseconds between frames that need no other to be shown, in a page that moves. */
const KEY_INTERVAL = 5_000;

/** The same for a still page: as key frames, its repetitions made an hour's film 44 MB large instead of 2. */
const STILL_KEY_INTERVAL = 300_000;

/** Lays frames out over the length of a film: the first from its start, each held until the next, the last to its end. */
export async function* layOut(frames: AsyncIterable<Frame>, length: number): AsyncGenerator<FilmFrame> {
  let shown: Frame | undefined;
  let lastKey = -Infinity;
  function* hold(until: number): Generator<FilmFrame> {
    if (!shown) return;
    for (let { at } = shown; at < until; at += LONGEST_STILL) {
      const isKey = at - lastKey >= (at === shown.at ? KEY_INTERVAL : STILL_KEY_INTERVAL);
      if (isKey) lastKey = at;
      yield { at, jpeg: shown.jpeg, duration: Math.min(LONGEST_STILL, until - at), isKey };
    }
  }
  for await (const frame of frames) {
    if (shown) yield* hold(frame.at);
    shown = shown ? frame : { at: 0, jpeg: frame.jpeg };
  }
  yield* hold(length);
}
