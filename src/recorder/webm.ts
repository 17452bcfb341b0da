import { EncodedPacket, EncodedVideoPacketSource, Output, StreamTarget, WebMOutputFormat } from 'mediabunny';
import type { EncodedChunk } from './chromium-encoder.js';
import type { FilePart } from './video-file.js';

/** Bytes of video that are collected for each write. */
const WRITE_SIZE = 1024 * 1024;

/**
 * Writes VP9 chunks to the stream as WebM. In a separate file, because the build removes the unused 90 % of mediabunny
 * only from static imports, and mediabunny must not load before the first video.
 */
export async function writeWebm(
  chunks: AsyncIterable<readonly EncodedChunk[]>,
  stream: WritableStream<FilePart>,
): Promise<void> {
  const target = new StreamTarget(stream, { chunked: true, chunkSize: WRITE_SIZE });
  const output = new Output({ format: new WebMOutputFormat(), target });
  const packets = new EncodedVideoPacketSource('vp9');
  output.addVideoTrack(packets);
  try {
    await output.start();
    for await (const some of chunks) {
      for (const { data, type, timestamp, duration, config } of some) {
        const packet = new EncodedPacket(Buffer.from(data, 'base64'), type, timestamp / 1e6, duration / 1e6);
        await packets.add(packet, config && { decoderConfig: config });
      }
    }
    await output.finalize();
  } catch (error) {
    await output.cancel().catch(() => {});
    throw error;
  }
}
