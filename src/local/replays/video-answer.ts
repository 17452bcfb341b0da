import { createReadStream } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import type { Video } from '../../recorder/video-file.js';
import { HttpFault, type Answer } from '../http/answer.js';

/** Answers with the video, or with the range of bytes that a player needs for seeking. */
export function videoAnswer(video: Video, { headers }: Pick<IncomingMessage, 'headers'>): Answer {
  const range = readRange(headers.range, video.size);
  const { start, end } = range ?? { start: 0, end: video.size - 1 };
  return {
    status: range ? 206 : 200,
    content: {
      type: video.type,
      size: end - start + 1,
      data: createReadStream(video.path, { start, end }),
    },
    headers: {
      'accept-ranges': 'bytes',
      ...(range && { 'content-range': `bytes ${start}-${end}/${video.size}` }),
    },
  };
}

/**
 * Reads a `Range` header of one byte range; `end` is the last byte, included. For several ranges, or another unit, the
 * whole content is a valid answer (RFC 9110, 14.2).
 */
function readRange(header: string | undefined, size: number): { start: number; end: number } | undefined {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(header?.replaceAll(' ', '') ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  // "-500" means the last 500 bytes.
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (start <= end) return { start, end };
  throw new HttpFault(416, 'range_not_satisfiable', `The video has ${size} bytes; the range is outside.`, {
    headers: { 'content-range': `bytes */${size}` },
  });
}
