import type { EncodedVideoPacketSource, Output, StreamTargetChunk } from 'mediabunny';
import type { EncodedChunk } from './studio-encoder.js';

/** Bytes of a film that are gathered before they are written. */
const GATHER = 1024 * 1024;

/** Every player of a browser plays VP9 in WebM, and every Chromium encodes it, those without licensed codecs too. */
export const FILM_TYPE = 'video/webm';

/** The pictures of a film, as they are put into a WebM file. */
export class FilmTrack {
  readonly #output: Output;
  readonly #packets: EncodedVideoPacketSource;

  private constructor(output: Output, packets: EncodedVideoPacketSource) {
    this.#output = output;
    this.#packets = packets;
  }

  static async begin(stream: WritableStream<StreamTargetChunk>): Promise<FilmTrack> {
    const { EncodedVideoPacketSource, Output, StreamTarget, WebMOutputFormat } = await import('mediabunny');
    const target = new StreamTarget(stream, { chunked: true, chunkSize: GATHER });
    const output = new Output({ format: new WebMOutputFormat(), target });
    const packets = new EncodedVideoPacketSource('vp9');
    output.addVideoTrack(packets);
    await output.start();
    return new FilmTrack(output, packets);
  }

  async add(chunks: readonly EncodedChunk[]): Promise<void> {
    const { EncodedPacket } = await import('mediabunny');
    for (const { data, type, timestamp, duration, config } of chunks) {
      const packet = new EncodedPacket(Buffer.from(data, 'base64'), type, timestamp / 1e6, duration / 1e6);
      await this.#packets.add(packet, config && { decoderConfig: config });
    }
  }

  /** Writes what is gathered, and where players find their places. */
  async end(): Promise<void> {
    await this.#output.finalize();
  }

  /** Best effort: it has failed already. */
  async cancel(): Promise<void> {
    await this.#output.cancel().catch(() => {});
  }
}
