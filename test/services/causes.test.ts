import { createServer } from 'node:net';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BrowserPool, withPooledBrowser, type RunEvent } from '../../src/index.js';
import { CONTRACTS, ContractServer, answerWith, type Contract } from '../support/contract-server.js';
import { expectNoSecrets } from '../support/collected.js';
import { TOKEN } from '../support/fake-service.js';
import { plainConnector } from '../support/plain-connector.js';
import { PlayedLease } from '../support/played-lease.js';

/** What is wrong with the first pool. */
interface Cause {
  /** An address at which nothing answers as it should. */
  readonly baseUrl?: () => string;
  /** The answer to each request that creates a session. */
  readonly answer?: (response: ServerResponse) => void;
  /** What the event says. Undefined: the call fails at once. */
  readonly tells?: object;
  /** What the error says if the second pool fails, too. */
  readonly error: object;
  /** Whether the pool just has no browser. */
  readonly isFull?: boolean;
}

/** Not a TLS server. */
const plain = createServer((socket) =>
  socket
    .on('error', () => {})
    .resume()
    .end('no TLS'),
);
beforeAll(async () => once(plain.listen(0, '127.0.0.1'), 'listening'));
afterAll(async () => once(plain.close(), 'close'));

const unreachable = { name: 'PoolConnectionError' };
const refused = (status: number) => ({ name: 'PoolServiceError', status });
/** A code, where each service has it. */
const body = (code: string) => ({ code, message: code, error: { code, message: code } });

const CAUSES: Readonly<Record<string, Cause>> = {
  'a refused connection': { baseUrl: () => 'http://127.0.0.1:9', tells: unreachable, error: unreachable },
  'an unknown host': { baseUrl: () => 'https://pool.invalid', tells: unreachable, error: unreachable },
  'no TLS': {
    baseUrl: () => `https://127.0.0.1:${(plain.address() as { port: number }).port}`,
    error: unreachable,
  },
  'an internal error': {
    answer: answerWith(500, {}, body('internal_error')),
    tells: refused(500),
    error: refused(500),
  },
  'a gateway without a service': {
    answer: answerWith(502, {}, 'Bad Gateway'),
    tells: refused(502),
    error: refused(502),
  },
  'a required payment': {
    answer: answerWith(402, {}, body('payment_required')),
    tells: refused(402),
    error: refused(402),
  },
  'a used quota': {
    answer: answerWith(403, {}, body('quota_exceeded')),
    tells: refused(403),
    error: refused(403),
  },
  'a long pause': {
    answer: answerWith(429, { 'retry-after': '600' }, body('rate_limited')),
    tells: refused(429),
    error: refused(429),
  },
  'a full pool': {
    answer: answerWith(429, {}, body('concurrency_limit')),
    tells: {},
    error: {},
    isFull: true,
  },
  'a wrong key': { answer: answerWith(401, {}, body('unauthorized')), error: refused(401) },
  'a wrong request': { answer: answerWith(400, {}, body('invalid_input')), error: refused(400) },
};

/** A call with a first pool that can't lease, and a second one that can, unless it is broken, too. */
async function run(contract: Contract, cause: Cause, isSecondBroken: boolean) {
  await using server = await ContractServer.start(contract);
  await using second = await PlayedLease.start();
  if (isSecondBroken) second.service.script('acquire', { status: 402, json: body('payment_required') });
  server.refusals.push(...Array.from({ length: 100 }, () => cause.answer ?? answerWith(500)));
  const baseUrl = cause.baseUrl?.() ?? server.baseUrl;
  const { service } = contract;
  const first = new BrowserPool<object>('first', { service, baseUrl, token: TOKEN });
  const other = new BrowserPool<object>('second', second.service.options);
  const events: RunEvent<object>[] = [];
  const outcome = await withPooledBrowser([first, other], () => 'value', {
    connector: plainConnector,
    onEvent: (event) => void events.push(event),
    // If the next pool were not asked at once, the test would last too long.
    failoverAfter: cause.isFull ? 100 : 60_000,
    retry: { minTimeout: 20, maxTimeout: 20 },
    ...(isSecondBroken && { acquireTimeout: 1000, unreachableTimeout: 500 }),
  }).catch((error: unknown) => ({ error: error as Error }));
  await Promise.all([first.close(), other.close()]);
  expectNoSecrets([outcome, events]);
  const moves = events.filter((event) => event.type === 'failover');
  return { outcome, moves, asked: server.requests.filter((route) => route === contract.create).length };
}

describe.each(CONTRACTS.map((contract) => [contract.name, contract] as const))(
  '%s, and then a second pool',
  (_name, contract) => {
    it.each(Object.entries(CAUSES))('after %s', async (_cause, cause) => {
      const { outcome, moves, asked } = await run(contract, cause, false);
      if (cause.tells) {
        expect(outcome).toMatchObject({ value: 'value', pool: 'second' });
        const error = cause.isFull ? undefined : expect.objectContaining(cause.tells);
        expect(moves).toMatchObject([{ pool: 'first', from: 'first', to: 'second' }]);
        expect(moves[0]!.error).toEqual(error);
        if (!cause.isFull) expect(asked).toBeLessThanOrEqual(1);
      } else {
        expect(outcome).toMatchObject({ error: cause.error });
        expect(moves).toEqual([]);
      }
    });
  },
);

it.each(Object.entries(CAUSES).filter(([, { tells }]) => tells))(
  'when the second pool fails, too, the error tells what happened at both: %s',
  async (_cause, cause) => {
    const contract = CONTRACTS.find(({ name }) => name === 'steel')!;
    const { outcome } = await run(contract, cause, true);
    // The second pool refused for good, and the first one was asked until the end of the time, or refused for good, too.
    const { message } = (outcome as { error: Error }).error;
    expect(message).toMatch(/Pool "(first|second)": /);
    expect(message).toContain('402');
  },
);
