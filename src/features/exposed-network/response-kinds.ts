import { clock } from '../../shared/clock.js';
import type { ExposedResponse, Unread } from './body-reader.js';
import type { Received, ResponseHead } from './exposed-request.js';

export function isStreamOfEvents({ status, headers }: ResponseHead): boolean {
  return status === 200 && /^text\/event-stream\b/i.test(valueOf('content-type', headers) ?? '');
}

/** Size in bytes from which a file is not sent to the browser. */
const LARGE_FILE = 8 * 1024 * 1024;
/** Types that no browser shows. */
const FILES =
  /^application\/(octet-stream|zip|gzip|x-(tar|gzip|zip-compressed|7z-compressed|rar-compressed|bzip2?|xz))\b/i;

/** Whether a browser downloads a response, which is large or has an unknown length. */
export function isFile(
  { status, headers, length = Number.POSITIVE_INFINITY }: Received,
  isDownload: boolean,
): boolean {
  if (status !== 200 || length < LARGE_FILE) return false;
  if (isDownload) return true;
  const disposition = valueOf('content-disposition', headers) ?? '';
  return /^attachment\b/i.test(disposition) || FILES.test(valueOf('content-type', headers) ?? '');
}

/** Size in bytes of a range that a video or a sound receives, and ms until it does: it requests the next one by itself. */
const LONGEST_RANGE = 8 * 1024 * 1024;
const LONGEST_WAIT = 1000;
const RANGE = /^bytes (\d+)-\d+(\/.*)$/i;

export function isRange({ status, headers }: ResponseHead): boolean {
  return status === 206 && RANGE.test(valueOf('content-range', headers) ?? '');
}

/** Makes of a long range, or of one that arrives slowly, a shorter one. */
export async function beginningOf(response: Unread, signal: AbortSignal): Promise<ExposedResponse> {
  const { headers, rest } = response;
  const body: Buffer[] = [];
  const started = clock.now();
  let size = 0;
  for await (const chunk of rest as AsyncIterable<Buffer>) {
    signal.throwIfAborted();
    body.push(chunk.subarray(0, LONGEST_RANGE - size));
    size += body.at(-1)!.length;
    if (size === LONGEST_RANGE || clock.now() - started > LONGEST_WAIT) break;
  }
  const [, from = '', total = ''] = RANGE.exec(valueOf('content-range', headers)!)!;
  const kept = headers.filter((one) => !/^content-(length|range):/i.test(one));
  const range = `content-range: bytes ${from}-${Number(from) + size - 1}${total}`;
  return { ...response, headers: [...kept, `content-length: ${size}`, range], body };
}

/** The value of a header. @param name In small letters. */
export function valueOf(name: string, headers: readonly string[]): string | undefined {
  const found = headers.find((one) => one.toLowerCase().startsWith(`${name}:`));
  return found?.slice(name.length + 1).trim();
}
