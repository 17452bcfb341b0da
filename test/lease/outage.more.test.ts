import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { BrowserPool } from '../../src/index.js';
import { FakeService, reply, session } from '../support/fake-service.js';
import { acquire as acquireFrom } from './support.js';

/** The queue of a pool limits the callers that send requests at the same time. */
const ACTIVE = 32;
const CALLERS = 48;

let service: FakeService;
let pool: BrowserPool;

beforeEach(async () => {
  service = await FakeService.start();
  pool = new BrowserPool('pool', service.options);
});

afterEach(async () => {
  await pool.close();
  await service.close();
});

function acquire({ pollTimeout = 60_000, signal }: { pollTimeout?: number; signal?: AbortSignal } = {}) {
  const retry = { minTimeout: 20, maxTimeout: 100 };
  return acquireFrom(pool, { acquireTimeout: Number.POSITIVE_INFINITY, pollTimeout, retry, signal });
}

/** Answers with an error after a pause, the first requests all together. Counts how many of the others overlap. */
function overlapAfter(first: number, status: number, pause: number): { seen: number; most: number } {
  const count = { seen: 0, most: 0 };
  let open = 0;
  let arrive!: () => void;
  const arrived = new Promise<void>((resolve) => (arrive = resolve));
  service.script('acquire', async (response) => {
    if (++count.seen === first) arrive();
    if (count.seen <= first) return arrived.then(() => reply(response, { status, delay: pause }));
    count.most = Math.max(count.most, ++open);
    await sleep(pause);
    open--;
    reply(response, { status });
  });
  return count;
}

it('sends one request at a time during an outage, and serves all callers after it', async () => {
  const overlap = overlapAfter(ACTIVE, 503, 20);
  const callers = Array.from({ length: CALLERS }, () => acquire());
  await expect.poll(() => overlap.seen).toBeGreaterThanOrEqual(ACTIVE + 10);
  expect(overlap.most).toBe(1);
  const during = service.of('acquire').length;
  let granted = 0;
  service.script('acquire', (response) =>
    reply(response, { status: 200, json: session({ session_id: `session-${++granted}` }) }),
  );
  const sessions = await Promise.all(callers);
  expect(new Set(sessions.map(({ session_id }) => session_id)).size).toBe(CALLERS);
  expect(service.of('acquire').length - during).toBe(CALLERS);
});

it('passes the turn on when the caller whose turn it is aborts', async () => {
  service.script('acquire', { status: 503, text: 'down' });
  const controllers = Array.from({ length: 20 }, () => new AbortController());
  const callers = controllers.map(({ signal }) => acquire({ signal }));
  await expect.poll(() => service.of('acquire').length).toBeGreaterThan(20);
  for (const controller of controllers.slice(1)) controller.abort(new Error('gone'));
  await Promise.allSettled(callers.slice(1));
  service.script('acquire', { status: 200, json: session() });
  expect((await callers[0]!).session_id).toBe('session-1');
});

it('ends the outage when the service lets a request wait, and lets the other callers send requests', async () => {
  // Shortens the twelve seconds to 50 ms.
  const { setTimeout: start } = globalThis;
  vi.spyOn(globalThis, 'setTimeout').mockImplementation((run: () => void, delay?: number) =>
    start(run, delay === 12_000 ? 50 : delay),
  );
  const down = { status: 503, text: 'down' };
  const waiting = new Set<() => void>();
  service.script('acquire', down, down, down, (response) => {
    waiting.add(() => reply(response, { status: 200, json: session({ session_id: `s-${waiting.size}` }) }));
  });
  const callers = Array.from({ length: 3 }, () => acquire());
  await expect.poll(() => waiting.size).toBe(3);
  for (const answer of waiting) answer();
  await Promise.all(callers);
});

it('does not count a 504 after the requested wait as an outage', async () => {
  const overlap = overlapAfter(10, 504, 700);
  const controller = new AbortController();
  const { signal } = controller;
  const callers = Array.from({ length: 10 }, () => acquire({ pollTimeout: 1000, signal }));
  await expect.poll(() => overlap.most).toBeGreaterThan(1);
  controller.abort(new Error('enough'));
  await Promise.allSettled(callers);
});
