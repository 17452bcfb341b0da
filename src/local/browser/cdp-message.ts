import { isRecord } from '../../shared/json.js';

/** Number of bytes at the start and at the end of a message that are examined. */
export const LONGEST_MATCH = 120;

/**
 * Chromium and all libraries write the session of a message last. Elsewhere, `sessionId` may be part of the parameters.
 */
const TAIL = /,"sessionId":"([\w-]+)"\}$/;

/** The session of a message from Chromium; `undefined` for the browser itself. */
export function sessionOf(message: Buffer): string | undefined {
  return TAIL.exec(message.toString('latin1', Math.max(0, message.length - LONGEST_MATCH)))?.[1];
}

/** A command of a client: its id, and its text with another id. */
interface Command {
  readonly own: unknown;
  readonly withId: (id: number) => string;
}

const FIRST_ID = /^\{"id":(\d+)(?=,)/;
const LAST_ID = /,"id":(\d+)(?=,"sessionId":"[\w-]+"\}$)/;

/**
 * Reads a command. Libraries write the session of a page last, and the id first or just before it: such a command, which
 * can be large, is not parsed. Other commands get the browser session, if they name none.
 */
export function readCommand(text: string, browserSession: string): Command {
  const at = Math.max(0, text.length - LONGEST_MATCH);
  const tail = text.slice(at);
  // A NUL would start another message on the pipe. JSON contains none.
  const isPlain = TAIL.test(tail) && !text.includes('\0');
  const first = isPlain ? FIRST_ID.exec(text.slice(0, LONGEST_MATCH)) : null;
  const last = isPlain && !first ? LAST_ID.exec(tail) : null;
  if (first) {
    const rest = text.slice(first[0].length);
    return { own: Number(first[1]), withId: (id) => `{"id":${id}${rest}` };
  }
  if (last) {
    const [before, after] = [text.slice(0, at + last.index), text.slice(at + last.index + last[0].length)];
    return { own: Number(last[1]), withId: (id) => `${before},"id":${id}${after}` };
  }
  const { id: own, sessionId, ...rest } = parseCommand(text);
  // Chromium treats an empty session as the pipe's own session, whose settings would outlive the client.
  const session = sessionId === undefined || sessionId === '' ? browserSession : sessionId;
  return { own, withId: (id) => JSON.stringify({ id, ...rest, sessionId: session }) };
}

function parseCommand(text: string): Record<string, unknown> {
  try {
    const command: unknown = JSON.parse(text);
    return isRecord(command) ? command : {};
  } catch {
    return {};
  }
}
