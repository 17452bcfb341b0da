import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { expect } from 'vitest';
import type { Answer } from '../support/fake-service.js';

/** Returns the error of a promise that rejects. */
export async function rejection<E extends Error = Error>(promise: Promise<unknown>): Promise<E> {
  return promise.then(
    (value) => {
      throw new Error(`It resolved: ${inspect(value)}`);
    },
    (error: E) => error,
  );
}

/** The token and the jwts of the fake service begin with this text, which must never be shown. */
const CANARY = 'canary-';

/** Fails when any representation of a value contains a secret. */
export function expectNoSecret(value: unknown): void {
  const { message, stack } = (value ?? {}) as Partial<Error>;
  const shown = [
    String(message),
    String(stack),
    JSON.stringify(value),
    inspect(value),
    inspect(value, { depth: Number.POSITIVE_INFINITY, showHidden: true, maxStringLength: null }),
  ];
  for (const text of shown) expect(text ?? '').not.toContain(CANARY);
}

/** The JSON of a value, as an object. */
export function asJson(value: unknown): unknown {
  const text = JSON.stringify(value);
  return JSON.parse(text);
}

/** Waits until a condition holds, at most until the test's own timeout. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(5);
}

/** Never answers. */
export const hang: Answer = () => {};

/** Ends the connection before a single byte of the response. */
export const reset: Answer = (response) => void response.socket?.resetAndDestroy();

/** Sends a response's head and the beginning of its body, then ends the connection. */
export function breakOff(body: string, status = 200): Answer {
  return async (response) => {
    response.writeHead(status, { 'content-type': 'application/json', 'content-length': body.length + 100 });
    response.write(body);
    await sleep(30);
    response.socket?.destroy();
  };
}

/** Sends single bytes without an end. */
export function drip(status: number): Answer {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    const timer = setInterval(() => response.write(' '), 20);
    response.on('close', () => clearInterval(timer));
  };
}
