import { rm, stat } from 'node:fs/promises';
import type { EncodedVideoPacketSource } from 'mediabunny';
import { layOut } from './film-frames.js';
import type { Film } from './local-replay.js';
import { readFrames } from './spool.js';
import type { EncodedChunk, StudioEncoder } from './studio-encoder.js';

/** What a film is made of. */
export interface FilmOrder {
  /** The spool with its frames. */
  readonly frames: string;
  /** Where to write it. */
  readonly path: string;
  /** In milliseconds. */
  readonly length: number;
  readonly framesPerSecond: number;
}

/** Every player of a browser plays VP9 in WebM, and every Chromium encodes it, those without licensed codecs too. */
const TYPE = 'video/webm';

/** Makes a film of a spool's frames, one frame in memory at a time; nothing when it holds none. */
export async function writeFilm(order: FilmOrder, encoder: StudioEncoder): Promise<Film | undefined> {
  const { path, length, framesPerSecond } = order;
  const { EncodedVideoPacketSource, FilePathTarget, Output, WebMOutputFormat } = await import('mediabunny');
  const output = new Output({ format: new WebMOutputFormat(), target: new FilePathTarget(path) });
  const track = new EncodedVideoPacketSource('vp9');
  output.addVideoTrack(track);
  let size: { width: number; height: number } | undefined;
  try {
    for await (const frame of layOut(readFrames(order.frames), length)) {
      if (!size) {
        size = await encoder.begin(frame.jpeg, framesPerSecond);
        await output.start();
      }
      await append(track, await encoder.encode(frame));
    }
    if (!size) return undefined;
    await append(track, await encoder.finish());
    await output.finalize();
  } finally {
    if (output.state !== 'finalized') {
      await output.cancel();
      await rm(path, { force: true });
    }
  }
  return { path, type: TYPE, size: (await stat(path)).size, duration: length, ...size };
}

async function append(track: EncodedVideoPacketSource, chunks: readonly EncodedChunk[]): Promise<void> {
  const { EncodedPacket } = await import('mediabunny');
  for (const { data, type, timestamp, duration, config } of chunks) {
    const packet = new EncodedPacket(Buffer.from(data, 'base64'), type, timestamp / 1e6, duration / 1e6);
    await track.add(packet, config && { decoderConfig: config });
  }
}
