import { excessOf, isBalanced } from '../shared/message-limit.js';
import { CHECKED } from './message-fields.js';
import { textOf, type Frame, type Message } from './forms.js';

/** Size of a message, in bytes, from which it costs less to look for the end of its content than to parse it. */
const LARGE = 64 * 1024;
const LONGEST_MARGIN = 200;
const METHOD = /"method":\s*"([\w.]+)"/;
const BEGINNING = /^\{(?:"type":"\w+",)?(?:"id":\d+,"result"|"method":"[\w.]+","params"):\{/;
const END = /\}(?:,"sessionId":"[\w-]+")?\}\s*$/;

/** The text of a large message without its content. */
interface Short {
  readonly text: string;
  /** Adds the content to what was read of the text. Undefined if the whole message must be read. */
  readonly addContent?: (message: Message) => Message;
}

/** Shortens a large message, for example a screenshot. Undefined if the content may replace the beginning. */
export function shortened(data: string | Frame): Short | undefined {
  if (!Buffer.isBuffer(data) || data.length < LARGE) return undefined;
  const head = textOf(data, 0, LONGEST_MARGIN);
  const method = METHOD.exec(head)?.[1];
  if (method === 'Fetch.requestPaused') return withoutBody(data);
  const beginning = BEGINNING.exec(head)?.[0];
  const end = END.exec(textOf(data, -LONGEST_MARGIN))?.[0];
  if (beginning === undefined || end === undefined) return undefined;
  // Without its content, an event that is checked is not what it must be: no client receives it, and the lease reports it.
  if (CHECKED.has(method) && excessOf(data) === undefined) return undefined;
  // Otherwise the content could name the beginning's fields again.
  return isBalanced(data.subarray(beginning.length, data.length - end.length))
    ? { text: `${beginning}${end}` }
    : undefined;
}

/** The texts at which a body begins, and at which its parts follow. No text in JSON contains these: its quotes are escaped. */
const BODY = '"postData":"';
const PARTS = '","hasPostData":true,"postDataEntries":[';
const PART = '{"bytes":"';
/** Characters of base64 that are decoded at once: four are three bytes. */
const STEP = 4 * 256 * 1024;

/**
 * The browser sends the body of a paused request twice, as a text and in base64, and both as texts of this process would be several times
 * as large. Undefined for another order of its fields.
 */
function withoutBody(data: Buffer): Short | undefined {
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
  return {
    text,
    addContent: (message) => {
      const postDataEntries = ranges.map((range) => (range ? { bytes: fromBase64(data, ...range) } : {}));
      Object.assign(message.params?.['request'] ?? {}, { postDataEntries });
      return message;
    },
  };
}

function fromBase64(data: Buffer, from: number, to: number): Buffer {
  const bytes = Buffer.allocUnsafe(Math.ceil((3 * (to - from)) / 4));
  let size = 0;
  for (let at = from; at < to; at += STEP)
    size += bytes.write(data.toString('latin1', at, Math.min(at + STEP, to)), size, 'base64');
  return bytes.subarray(0, size);
}
