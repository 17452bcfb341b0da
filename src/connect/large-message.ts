import { isChecked } from './message-fields.js';
import { partOf, type Frame } from './wire.js';

/** Size of a message, in bytes, from which it costs less to search for a second id than to parse it. */
const LARGE = 64 * 1024;
const LONGEST_MARGIN = 200;
const BEGINNING = /^\{(?:"type":"\w+",)?(?:"id":\d+,"result"|"method":"[\w.]+","params"):\{/;
const END = /\}(?:,"sessionId":"[\w-]+")?\}\s*$/;
/** What a beginning could be replaced with, also escaped. */
const NAMES = ['\\u', '"id"', '"method"', '"sessionId"', '"params"', '"error"', '"type"'];

/** Returns a large message without its content, for example a screenshot. Undefined if the content may replace the beginning. */
export function withoutContent(data: string | Frame): string | undefined {
  if (!(data instanceof Buffer) || data.length < LARGE) return undefined;
  const beginning = BEGINNING.exec(partOf(data, 0, LONGEST_MARGIN))?.[0];
  const end = END.exec(partOf(data, -LONGEST_MARGIN))?.[0];
  if (beginning === undefined || end === undefined || isChecked(shownMethod(beginning))) return undefined;
  const content = data.subarray(beginning.length, data.length - end.length);
  return NAMES.some((name) => content.includes(name)) ? undefined : `${beginning}${end}`;
}

/** Where a body as a text begins, and where its parts follow. No text in JSON contains these: its quotes are escaped. */
const BODY = '"postData":"';
const PARTS = '","hasPostData":true,"postDataEntries":[';
const PART = '{"bytes":"';
/** Characters of base64 that are decoded at once: four are three bytes. */
const STEP = 4 * 256 * 1024;

/**
 * Returns a paused request without its body, and the parts of the body. The browser sends a body twice, as a text and in base64, and both
 * as texts of this process would be several times as large. Undefined for other messages, and another order of their fields.
 */
export function pausedWithoutBody(data: string | Frame): { text: string; parts(): object[] } | undefined {
  if (!(data instanceof Buffer) || data.length < LARGE) return undefined;
  if (shownMethod(data) !== 'Fetch.requestPaused') return undefined;
  const end = data.indexOf(PARTS);
  const start = end === -1 ? -1 : data.lastIndexOf(BODY, end);
  if (start === -1) return undefined;
  const ranges: (readonly [from: number, to: number] | undefined)[] = [];
  let at = end + PARTS.length;
  while (data[at] === '{'.charCodeAt(0)) {
    const from = at + PART.length;
    const hasBytes = data.toString('latin1', at, from) === PART;
    const to = hasBytes ? data.indexOf('"', from) : at;
    if (to === -1) return undefined;
    ranges.push(hasBytes ? [from, to] : undefined);
    // The end of the object, and a comma.
    at = to + 2;
    if (data[at] === ','.charCodeAt(0)) at++;
  }
  if (data[at] !== ']'.charCodeAt(0)) return undefined;
  const text = `${data.toString('utf8', 0, start + BODY.length)}","hasPostData":true${data.toString('utf8', at + 1)}`;
  return { text, parts: () => ranges.map((range) => (range ? { bytes: fromBase64(data, ...range) } : {})) };
}

function fromBase64(data: Buffer, from: number, to: number): Buffer {
  const bytes = Buffer.allocUnsafe(Math.ceil((3 * (to - from)) / 4));
  let size = 0;
  for (let at = from; at < to; at += STEP)
    size += bytes.write(data.toString('latin1', at, Math.min(at + STEP, to)), size, 'base64');
  return bytes.subarray(0, size);
}

const METHOD = /"method":\s*"([\w.]+)"/;
/** Longest beginning of a command in which its method is, in bytes. */
const LONGEST_HEAD = 200;
/** Reads the method in the beginning of a message, where the known libraries and browsers write it. */
export function shownMethod(data: string | Frame): string | undefined {
  return METHOD.exec(partOf(data, 0, LONGEST_HEAD))?.[1];
}
