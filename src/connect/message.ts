import { isRecord, parseJson } from '../shared/json.js';
import type { Frame } from './socket.js';

/** A command or an event of CDP or WebDriver BiDi. Its fields come from outside. */
export interface Message {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly sessionId?: unknown;
  readonly params: Record<string, unknown>;
}

/** @throws SyntaxError if the message is not JSON. */
export function readMessage(data: string | Frame): Message {
  const { params, ...others } = record(parseJson(String(data)));
  return { ...others, params: record(params) };
}

/** Reads the result in a response; an empty one in an error. */
export function readResult(data: Frame): Record<string, unknown> {
  return record(record(parseJson(String(data)))['result']);
}

function record(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {};
}

/** Reads a part of a message: a whole one can have megabytes. */
export function partOf(data: string | Frame, from: number, to?: number): string {
  if (typeof data === 'string') return data.slice(from, to);
  return data instanceof Uint8Array ? Buffer.from(data.subarray(from, to)).toString('latin1') : '';
}
