import type { IncomingMessage } from 'node:http';
import type { HandoffAnswer } from '../features/handoff/options.js';
import { readBody, Refusal } from '../net/loopback-server.js';
import { InvalidOptionError, isPooledBrowserError } from '../shared/errors.js';
import { jsonOf } from '../shared/json.js';
import { isHandoffTimeoutError } from '../shared/lease-errors.js';

/** Largest body in bytes. */
const MOST_BYTES = 64 * 1024;

/** The response to a program that asks for a person. */
export interface HandoffResponse {
  readonly status: number;
  readonly body: HandoffAnswer | { readonly error: string };
}

/**
 * Answers the request of a program for a person: JSON with the options of `handoff`. The program gets the answer of the person, and can't
 * answer itself. Never rejects.
 */
export async function answerHandoff(
  request: IncomingMessage,
  ask: (options: unknown) => Promise<HandoffAnswer>,
): Promise<HandoffResponse> {
  const refuse = (status: number, error: string) => ({ status, body: { error } });
  const { method, headers } = request;
  if (method !== 'POST') return refuse(405, 'Ask with POST and {"message": …, "timeout": ms}.');
  // A page can't leave out this header.
  if (headers.origin !== undefined) return refuse(403, 'Requests of pages are refused.');
  if (!/^application\/json\b/i.test(headers['content-type'] ?? ''))
    return refuse(415, 'The body must be application/json.');
  try {
    const body = await readBody(request, MOST_BYTES);
    return { status: 200, body: await ask(jsonOf(body)) };
  } catch (error) {
    if (error instanceof Refusal) return refuse(error.status, error.message);
    if (error instanceof InvalidOptionError) return refuse(400, error.message);
    if (isHandoffTimeoutError(error)) return refuse(408, error.message);
    return isPooledBrowserError(error) ? refuse(502, error.message) : refuse(500, 'The hand-off has ended.');
  }
}
