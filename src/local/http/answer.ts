import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ErrorDetail } from '../../shared/service-errors.js';

/** The response of a route. */
export interface Answer {
  readonly status: number;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent instead of a JSON body. */
  readonly content?: Content;
  readonly headers?: Readonly<Record<string, string>>;
  /** Called when the client closes its connection before it receives the response. */
  readonly onUndelivered?: () => void;
}

/** A body that is not JSON. */
export interface Content {
  /** MIME type. */
  readonly type: string;
  /** Size in bytes. */
  readonly size: number;
  readonly data: Buffer | Readable;
}

/** 204 without a body. */
export const EMPTY: Answer = { status: 204 };

export function faultAnswer(error: unknown): Answer {
  const { status, body, extras } = toFault(error);
  return { status, body, ...(extras.headers && { headers: extras.headers }) };
}

/** Sends the answer. Resolves when it is delivered or lost. */
export async function send(response: ServerResponse, answer: Answer): Promise<void> {
  const { status, headers = {}, onUndelivered } = answer;
  const content = contentOf(answer);
  try {
    // A write to a closed socket would report success.
    if (response.destroyed || response.socket?.destroyed)
      throw new Error('The client closed its connection.');
    response.writeHead(status, { ...(content && contentHeaders(content)), ...headers });
    if (response.req.method === 'HEAD') response.end();
    else await pipeline(streamOf(content?.data ?? []), response);
  } catch {
    onUndelivered?.();
  } finally {
    // An unread file stream would stay open.
    if (content?.data instanceof Readable) content.data.destroy();
  }
}

function streamOf(data: Buffer | Readable | never[]): Readable {
  return data instanceof Readable ? data : Readable.from(data);
}

/** The body of an answer as it is sent; undefined without a body. */
function contentOf({ content, body }: Answer): Content | undefined {
  if (content || body === undefined) return content;
  const data = Buffer.from(JSON.stringify(body));
  return { type: 'application/json', size: data.length, data };
}

function contentHeaders({ type, size }: Content): Record<string, string | number> {
  return { 'content-type': type, 'content-length': size, 'cache-control': 'no-store' };
}

/** Optional parts of an error response. */
interface FaultExtras {
  readonly details?: readonly ErrorDetail[];
  readonly inner_error?: ErrorDetail;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An error that becomes the response of a request. */
export class HttpFault extends Error {
  readonly status: number;
  readonly code: string;
  readonly extras: FaultExtras;

  constructor(status: number, code: string, message: string, extras: FaultExtras = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.extras = extras;
  }

  /** The body, in the API's Error shape. */
  get body(): object {
    const { headers: _headers, ...fields } = this.extras;
    return { code: this.code, message: this.message, ...fields };
  }
}

/** 400 with one detail for each wrong field. */
export function badRequest(message: string, wrong: readonly string[] = []): HttpFault {
  const details = wrong.map((message) => ({ code: 'invalid_input', message }));
  return new HttpFault(400, 'bad_request', message, details.length > 0 ? { details } : {});
}

export function notFound(message: string): HttpFault {
  return new HttpFault(404, 'not_found', message);
}

export function closing(): HttpFault {
  return new HttpFault(503, 'service_unavailable', 'The local pool is closing.');
}

/** Any error as a response. The response to an unexpected error contains no internals. */
export function toFault(error: unknown): HttpFault {
  return error instanceof HttpFault ? error : new HttpFault(500, 'internal_error', 'Internal server error.');
}
