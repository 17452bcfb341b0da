import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { HttpFault } from './http-fault.js';

/** What a route answers. */
export interface Answer {
  readonly status: number;
  /** Sent as JSON; nothing for an empty response. */
  readonly body?: unknown;
  /** Sent instead of a JSON body. */
  readonly content?: Content;
  readonly headers?: Readonly<Record<string, string>>;
  /** Called when the client went away before it had the response. */
  readonly onUndelivered?: () => void;
}

/** A body that is no JSON: a page, a film. */
export interface Content {
  /** Its MIME type. */
  readonly type: string;
  /** In bytes. */
  readonly size: number;
  readonly data: Buffer | Readable;
}

/** 204, empty. */
export const EMPTY: Answer = { status: 204 };

/** The answer that an error is. */
export function faultAnswer({ status, body, extras }: HttpFault): Answer {
  return { status, body, ...(extras.headers && { headers: extras.headers }) };
}

/** Sends the answer; resolves when it is delivered, or known to be lost. */
export async function send(response: ServerResponse, answer: Answer): Promise<void> {
  const { status, headers = {}, onUndelivered } = answer;
  const content = answer.content ?? jsonContent(answer.body);
  try {
    // A response to a closed socket would report success.
    if (response.destroyed || response.socket?.destroyed) throw new Error('The client went away.');
    response.writeHead(status, { ...(content && contentHeaders(content)), ...headers });
    await pipeline(content ? bytesOf(content) : Readable.from([]), response);
  } catch {
    // Unread, the stream of a film would keep its file open.
    if (content?.data instanceof Readable) content.data.destroy();
    onUndelivered?.();
  }
}

function jsonContent(body: unknown): Content | undefined {
  if (body === undefined) return undefined;
  const data = Buffer.from(JSON.stringify(body));
  return { type: 'application/json', size: data.length, data };
}

function bytesOf({ data }: Content): Readable {
  return data instanceof Readable ? data : Readable.from([data]);
}

function contentHeaders({ type, size }: Content): Record<string, string | number> {
  return { 'content-type': type, 'content-length': size, 'cache-control': 'no-store' };
}
