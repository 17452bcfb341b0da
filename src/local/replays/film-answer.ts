import { createReadStream } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import type { Answer } from '../http/answer.js';
import { HttpFault } from '../http/http-fault.js';
import type { Film } from './local-replay.js';

/** The film, or the part of it that a player asks for: without `Range`, players can't seek. */
export function filmAnswer(film: Film, { headers }: Pick<IncomingMessage, 'headers'>): Answer {
  const range = readRange(headers.range, film.size);
  const { start, end } = range ?? { start: 0, end: film.size - 1 };
  return {
    status: range ? 206 : 200,
    content: {
      type: film.type,
      size: end - start + 1,
      data: createReadStream(film.path, { start, end }),
    },
    headers: {
      'accept-ranges': 'bytes',
      ...(range && { 'content-range': `bytes ${start}-${end}/${film.size}` }),
    },
  };
}

interface Range {
  readonly start: number;
  /** The last byte, included. */
  readonly end: number;
}

/** One range of bytes. Several, or what is no range of bytes, may be answered with the whole (RFC 9110, 14.2). */
function readRange(header: string | undefined, size: number): Range | undefined {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(header?.replaceAll(' ', '') ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  // "-500" is the last 500 bytes.
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (start > end) throw unsatisfiable(size);
  return { start, end };
}

function unsatisfiable(size: number): HttpFault {
  return new HttpFault(416, 'range_not_satisfiable', 'The film has no such bytes.', {
    headers: { 'content-range': `bytes */${size}` },
  });
}
