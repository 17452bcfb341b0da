import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { it as plainIt } from 'vitest';
import { BrowserPool } from '../../src/pool/browser-pool.js';
import type { PoolEvent } from '../../src/pool/events.js';
import type { AcquireRequest } from '../../src/index.js';
import type { PoolResponseError } from '../../src/shared/service-errors.js';
import { expectNoSecrets } from '../support/collected.js';
import { FakeService, type Answer } from '../support/fake-service.js';

/** A test with a fake service, and with a pool of it. */
export const it = plainIt.extend<{ service: FakeService; pool: BrowserPool }>({
  // oxlint-disable-next-line no-empty-pattern -- Vitest reads the pattern.
  service: async ({}, use) => {
    await using service = await FakeService.start();
    await use(service);
  },
  pool: async ({ service }, use) => {
    await using pool = new BrowserPool('pool', service.options);
    await use(pool);
  },
});

/** Returns the error and the events of an acquire request with this answer, after all releases. */
export async function refusedGrant(answer: Answer, request: AcquireRequest = {}) {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  service.script('acquire', answer);
  const events: PoolEvent[] = [];
  const onEvent = (event: PoolEvent) => void events.push(event);
  const error = await rejection<PoolResponseError>(pool.acquire(request, { onEvent }));
  await pool.close();
  expectNoSecrets(error, events);
  return { error, events, types: events.map(({ type }) => type), released: service.released };
}

/** Returns the error of a promise that rejects. */
export async function rejection<E extends Error = Error>(promise: Promise<unknown>): Promise<E> {
  return promise.then(
    (value) => {
      throw new Error(`It resolved: ${inspect(value)}`);
    },
    (error: E) => error,
  );
}

/** The JSON of a value, as an object. */
export function asJson(value: unknown): unknown {
  const text = JSON.stringify(value);
  return JSON.parse(text);
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
