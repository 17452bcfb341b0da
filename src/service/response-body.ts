import type { HttpResponse } from './response.js';

/** Largest response body that is read, in bytes, unpacked. */
const LARGEST_BODY = 4 * 1024 * 1024;

/** Reads a body to its end, or as far as it arrives. */
export async function readBody(
  content: AsyncIterable<Uint8Array>,
  headers: HttpResponse['headers'],
): Promise<Pick<HttpResponse, 'body' | 'brokenBy'>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  let brokenBy: Error | undefined;
  try {
    for await (const chunk of content) {
      size += chunk.length;
      if (size > LARGEST_BODY) throw new Error(TOO_LARGE);
      chunks.push(chunk);
    }
  } catch (error) {
    brokenBy = error as Error;
  }
  const bytes = Buffer.concat(chunks);
  const encoding = headers['content-encoding'];
  const read =
    encoding === undefined || encoding === 'identity' ? { bytes } : await unpack(bytes, String(encoding));
  brokenBy ??= read.brokenBy;
  // Some gateways add a byte order mark.
  return { body: String(read.bytes).replace(/^\uFEFF/, ''), ...(brokenBy && { brokenBy }) };
}

const TOO_LARGE = `The response is larger than ${LARGEST_BODY / 1024 ** 2} MiB`;

/** Unpacks a body that a gateway compressed, though the request accepts no encoding. Of a broken one, what is there. */
async function unpack(bytes: Buffer, encoding: string): Promise<{ bytes: Buffer; brokenBy?: Error }> {
  const zlib = await import('node:zlib');
  const { Z_SYNC_FLUSH: finishFlush, BROTLI_OPERATION_FLUSH } = zlib.constants;
  const limit = { maxOutputLength: LARGEST_BODY };
  try {
    if (/^(x-)?gzip$/i.test(encoding)) return { bytes: zlib.gunzipSync(bytes, { ...limit, finishFlush }) };
    if (/^deflate$/i.test(encoding)) return { bytes: zlib.inflateSync(bytes, { ...limit, finishFlush }) };
    if (/^br$/i.test(encoding))
      return { bytes: zlib.brotliDecompressSync(bytes, { ...limit, finishFlush: BROTLI_OPERATION_FLUSH }) };
    return {
      bytes: Buffer.alloc(0),
      brokenBy: new Error(`the content encoding ${encoding} is not supported`),
    };
  } catch (error) {
    const isLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    return { bytes: Buffer.alloc(0), brokenBy: isLarge ? new Error(TOO_LARGE) : (error as Error) };
  }
}
