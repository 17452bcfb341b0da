import type { WebSocket } from 'ws';
import { clock } from './clock.js';
import { isBytes } from './globals.js';

/** Largest message of a client of the proxy, in bytes: Playwright sends up to 50 MB of files in one, in base64. */
export const LARGEST_FROM_CLIENT = 72 * 1024 * 1024;
/** Largest message of a client of a local pool, in bytes. A response of an exposed host has up to 64 MiB, in base64. */
export const LARGEST_OF_POOL = 100 * 1024 * 1024;
/** Most values and names of a message: the time to read it depends on them more than on its bytes. */
const MOST_VALUES = 500_000;
/** Most levels of a message of a client. Chromium reads 300. */
const MOST_LEVELS = 1000;
/** Codes of a close frame: too many fragments, and a message above a limit. */
const MANY_FRAGMENTS = 1008;
export const TOO_LARGE = 1009;
/** Milliseconds in which a client that sends too much reads why. */
const LAST_WORDS = 5000;

const ADVICE = 'Send more as one text (JSON.stringify), or in parts.';

/** Returns why a message of a client is not read; undefined if it is. Takes linear time, and the memory of one number for each level. */
export function excessOf(data: unknown): string | undefined {
  if (!isBytes(data) || data.length < MOST_LEVELS) return undefined;
  let [values, levels] = [0, 0];
  for (let at = 0; at < data.length; at++) {
    switch (data[at]) {
      case QUOTE:
        at = endOfText(data, at + 1);
        break;
      case OPEN_LIST:
      case OPEN_OBJECT:
        values++;
        if (++levels > MOST_LEVELS) return `A message may have ${count(MOST_LEVELS)} levels. ${ADVICE}`;
        break;
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        levels--;
        break;
      case COLON:
      case COMMA:
        values++;
        break;
      default:
    }
    if (values > MOST_VALUES) return `A message may have ${count(MOST_VALUES)} values and names. ${ADVICE}`;
  }
  return undefined;
}

/** Whether each list and object that a part of a JSON text begins also ends there, and no other one does. Takes linear time. */
export function isBalanced(data: Uint8Array): boolean {
  let levels = 0;
  for (let at = 0; at < data.length && levels >= 0; at++) {
    const byte = data[at];
    if (byte === QUOTE) {
      at = endOfText(data, at + 1);
      if (at >= data.length) return false;
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) levels++;
    else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) levels--;
  }
  return levels === 0;
}

/**
 * Returns the values of a large JSON object, by their names. Undefined for other data, and if two readers could find different values: a name
 * is there twice, or a comment, which Chromium skips, or the end of a message on a pipe. Takes linear time, and no copies.
 */
export function fieldsOf(data: Buffer): ReadonlyMap<string, Buffer> | undefined {
  const fields = new Map<string, Buffer>();
  let [levels, start] = [0, 1];
  let name: string | undefined;
  if (data[0] !== OPEN_OBJECT || data.includes(0)) return undefined;
  for (let at = 0; at < data.length; at++) {
    const byte = data[at];
    if (byte === QUOTE) at = endOfText(data, at + 1);
    else if (byte === SLASH) return undefined;
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) levels++;
    else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) levels--;
    const isField = levels === 1 && byte === COMMA;
    if (levels === 1 && byte === COLON) {
      if (name !== undefined || at - start > LONGEST_NAME) return undefined;
      name = NAME.exec(data.toString('latin1', start, at))?.[1];
    } else if (!isField && levels > 0) continue;
    else if (name === undefined || fields.has(name)) return undefined;
    else {
      fields.set(name, data.subarray(start, at));
      name = undefined;
    }
    start = at + 1;
    if (levels === 0) return start === data.length ? fields : undefined;
  }
  return undefined;
}

const LONGEST_NAME = 100;
const NAME = /^\s*"(\w+)"\s*$/;

const [QUOTE, ESCAPE, COLON, COMMA, SLASH] = [0x22, 0x5c, 0x3a, 0x2c, 0x2f];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];
/** Bytes that are faster to look at than to search. */
const SHORT = 32;

/** Returns the place of the quote that ends a text; the length of the data without one. */
function endOfText(data: Uint8Array, start: number): number {
  let at = start;
  for (;;) {
    for (const end = at + SHORT; at < end; at += data[at] === ESCAPE ? 2 : 1)
      if (data[at] === QUOTE) return at;
    const quote = data.indexOf(QUOTE, at);
    if (quote === -1) return data.length;
    let first = quote;
    while (first > at && data[first - 1] === ESCAPE) first--;
    if ((quote - first) % 2 === 0) return quote;
    at = quote + 1;
  }
}

function count(number: number): string {
  return number.toLocaleString('en-US');
}

/** Returns a class of WebSockets that name the limit when they close a connection for it. */
export function naming(Base: typeof WebSocket, largest: number): typeof WebSocket {
  return class extends Base {
    override close(code?: number, data?: string | Buffer): void {
      const reason = data === undefined ? reasonOf(code, largest) : undefined;
      super.close(code, reason ?? data);
      if (reason === undefined) return;
      // Until then, ws reads and drops what the client still sends, so that the client can read the reason.
      const timer = clock.setTimeout(() => this.terminate(), LAST_WORDS);
      this.once('close', () => clock.clearTimeout(timer));
    }
  };
}

function reasonOf(code: number | undefined, largest: number): string | undefined {
  if (code === MANY_FRAGMENTS)
    return 'The message has too many fragments. Send it in larger ones, or in one.';
  if (code !== TOO_LARGE) return undefined;
  return `A message may have ${largest / 1024 / 1024} MiB. Send files by their path, and other data in parts.`;
}
