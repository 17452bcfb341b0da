import type { IncomingMessage } from 'node:http';
import { readHandoff, type HandoffAnswer, type HandoffStatus } from '../features/handoff/options.js';
import { readBody, Refusal } from '../net/loopback-server.js';
import { InvalidOptionError, isPooledBrowserError } from '../shared/errors.js';
import { isRecord, jsonOf } from '../shared/json.js';
import { isHandoffTimeoutError } from '../shared/lease-errors.js';

/** Largest body in bytes. */
const MOST_BYTES = 64 * 1024;

/** The last hand-off that a program has asked for. `note`: of the person; `error`: why there is no answer. */
export interface HandoffState {
  readonly status: HandoffStatus | 'waiting';
  readonly note?: string;
  readonly error?: string;
}

/** The response to a program that asks for a person. */
export interface HandoffResponse {
  readonly status: number;
  readonly body: HandoffAnswer | HandoffState | { readonly error: string };
}

/** Resolves with the answer of the person. @param gone Aborts when the program no longer waits. */
type Ask = (options: unknown, gone: AbortSignal | undefined) => Promise<HandoffAnswer>;

/**
 * The requests of programs for a person: JSON with the options of `handoff`. A program gets the answer of the person, and can't answer
 * itself: no response has the URL of the page.
 */
export class HandoffRequests {
  readonly #ask: Ask;
  #last: HandoffState | undefined;

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  /** Undefined before the first one. */
  get last(): HandoffState | undefined {
    return this.#last;
  }

  /** Answers `POST`, and `GET` with the state of the last hand-off. Never rejects. */
  async answer(request: IncomingMessage, gone: AbortSignal): Promise<HandoffResponse> {
    const refuse = (status: number, error: string) => ({ status, body: { error } });
    const { method = '', headers } = request;
    // A page can't leave out this header.
    if (headers.origin !== undefined) return refuse(403, 'Requests of pages are refused.');
    if (method === 'GET') return this.#last ? { status: 200, body: this.#last } : refuse(404, NOBODY_ASKED);
    if (method !== 'POST') return refuse(405, 'Ask with POST and {"message": …, "timeout": ms}.');
    if (!/^application\/json\b/i.test(headers['content-type'] ?? ''))
      return refuse(415, 'The body must be application/json.');
    try {
      const body = jsonOf(await readBody(request, MOST_BYTES));
      if (!isRecord(body)) return refuse(400, 'The body must be an object: {"message": …, "timeout": ms}.');
      const { wait = true, ...options } = body;
      if (typeof wait !== 'boolean') return refuse(400, 'wait must be true or false.');
      // Of what is wrong with the options, the program learns at once.
      readHandoff(options);
      if (wait) return { status: 200, body: await this.#begin(options, gone) };
      if (this.#last?.status === 'waiting') return refuse(409, IS_ASKED);
      this.#begin(options, undefined).catch(() => {});
      return { status: 202, body: { status: 'waiting' } };
    } catch (error) {
      if (error instanceof Refusal) return refuse(error.status, error.message);
      if (error instanceof InvalidOptionError) return refuse(400, error.message);
      if (isHandoffTimeoutError(error)) return refuse(408, error.message);
      return isPooledBrowserError(error) ? refuse(502, error.message) : refuse(500, ENDED);
    }
  }

  async #begin(options: object, gone: AbortSignal | undefined): Promise<HandoffAnswer> {
    this.#last = { status: 'waiting' };
    try {
      return (this.#last = await this.#ask(options, gone));
    } catch (error) {
      const text = isPooledBrowserError(error) ? error.message : ENDED;
      this.#last = { status: isHandoffTimeoutError(error) ? 'timeout' : 'ended', error: text };
      throw error;
    }
  }
}

const ENDED = 'The hand-off has ended.';
const NOBODY_ASKED = 'No person was asked. Ask with POST and {"message": …, "wait": false}.';
const IS_ASKED = 'A person is asked already. GET this URL for the answer.';
