import { finished } from 'node:stream/promises';
import type { ServerResponse } from 'node:http';
import type { HttpFault } from './http-fault.js';

/** What a route answers. */
export interface Answer {
  readonly status: number;
  /** Sent as JSON; nothing for an empty response. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Called when the client went away before it had the response. */
  readonly onUndelivered?: () => void;
}

/** 204, empty. */
export const EMPTY: Answer = { status: 204 };

/** The answer that an error is. */
export function faultAnswer({ status, body, extras }: HttpFault): Answer {
  return { status, body, ...(extras.headers && { headers: extras.headers }) };
}

/** Sends the answer; resolves when it is delivered, or known to be lost. */
export async function send(response: ServerResponse, answer: Answer): Promise<void> {
  const { status, body, headers = {}, onUndelivered } = answer;
  const text = body === undefined ? undefined : JSON.stringify(body);
  try {
    // A response to a closed socket would report success.
    if (response.destroyed || response.socket?.destroyed) throw new Error('The client went away.');
    response.writeHead(status, { ...headers, ...(text !== undefined && contentOf(text)) });
    response.end(text);
    await finished(response);
  } catch {
    onUndelivered?.();
  }
}

function contentOf(text: string): Record<string, string | number> {
  return {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
  };
}
