/**
 * Runs in the film studio's page, where Chromium's encoder is. A string, since it is no code of this process: the film
 * has the size of its first frame, and others are fitted into it.
 */
export const STUDIO_PAGE = `
globalThis.studio = {
  async open(jpeg, framesPerSecond) {
    const first = await this.picture(jpeg);
    const even = (pixels) => Math.max(2, pixels - (pixels % 2));
    const size = { width: even(first.width), height: even(first.height) };
    this.canvas = new OffscreenCanvas(size.width, size.height);
    this.context = this.canvas.getContext('2d', { alpha: false });
    this.chunks = [];
    this.encoder = new VideoEncoder({
      output: (chunk, meta) => this.chunks.push(this.plain(chunk, meta)),
      error: (error) => (this.error = error),
    });
    const bitrate = Math.round(size.width * size.height * 1.5);
    this.encoder.configure({ codec: 'vp09.00.41.08', ...size, bitrate, framerate: framesPerSecond, latencyMode: 'realtime' });
    return size;
  },
  async encode(jpeg, at, duration, keyFrame) {
    const picture = await this.picture(jpeg);
    const { width, height } = this.canvas;
    const scale = Math.min(width / picture.width, height / picture.height, 1);
    const [wide, high] = [picture.width * scale, picture.height * scale];
    this.context.fillRect(0, 0, width, height);
    this.context.drawImage(picture, (width - wide) / 2, (height - high) / 2, wide, high);
    picture.close();
    const frame = new VideoFrame(this.canvas, { timestamp: at * 1000, duration: duration * 1000 });
    this.encoder.encode(frame, { keyFrame });
    frame.close();
    while (this.encoder.encodeQueueSize > 2) await new Promise((resolve) => (this.encoder.ondequeue = resolve));
    return this.take();
  },
  async finish() {
    await this.encoder.flush();
    this.encoder.close();
    return this.take();
  },
  take() {
    if (this.error) throw this.error;
    return this.chunks.splice(0);
  },
  async picture(jpeg) {
    const bytes = Uint8Array.from(atob(jpeg), (character) => character.charCodeAt(0));
    return createImageBitmap(new Blob([bytes], { type: 'image/jpeg' }));
  },
  plain(chunk, meta) {
    const bytes = new Uint8Array(chunk.byteLength);
    chunk.copyTo(bytes);
    let text = '';
    for (let place = 0; place < bytes.length; place += 8192)
      text += String.fromCharCode(...bytes.subarray(place, place + 8192));
    const { type, timestamp, duration } = chunk;
    const { codec, codedWidth, codedHeight, colorSpace } = meta?.decoderConfig ?? {};
    const config = codec && { codec, codedWidth, codedHeight, colorSpace };
    return { data: btoa(text), type, timestamp, duration, config };
  },
};
`;
