import { afterEach, beforeEach, expect, it } from 'vitest';
import type { RunEvent } from '../../src/index.js';
import { callInside } from '../../src/lease/nesting.js';
import type { SessionLeaseOptions } from '../../src/lease/options.js';
import { BrowserPool } from '../../src/service/browser-pool.js';
import { FakeService, reply, session } from '../support/fake-service.js';
import { rejection } from '../service/support.js';
import { acquire as acquireFrom } from './support.js';

/** Number of calls that may send requests to one pool at the same time. */
const ASKING = 32;

let service: FakeService;
let pool: BrowserPool;
let waiting: (() => void)[];

beforeEach(async () => {
  service = await FakeService.start();
  pool = new BrowserPool('pool', service.options);
  waiting = [];
  service.script('acquire', (response) => {
    waiting.push(() => reply(response, { status: 200, json: session() }));
  });
});

afterEach(async () => {
  answerAll();
  service.script('acquire', { status: 200, json: session() });
  await pool.close();
  await service.close();
});

function acquire(name: string, options: SessionLeaseOptions = {}, from = pool) {
  return acquireFrom(from, { name, ...options });
}

/** Starts as many calls as may send requests, so that further calls wait. */
async function fill(): Promise<Promise<unknown>[]> {
  const calls = Array.from({ length: ASKING }, (_, index) => acquire(`first-${index}`));
  await expect.poll(() => waiting.length).toBe(ASKING);
  return calls;
}

function answerAll(): void {
  for (const answer of waiting.splice(0)) answer();
}

const asked = () => service.of('acquire').map(({ body }) => body!['name']);

it('lets the next call in the queue send its request when another call has its browser', async () => {
  const calls = await fill();
  const events: RunEvent[] = [];
  for (const name of ['a', 'b', 'c']) calls.push(acquire(name, { onEvent: (event) => events.push(event) }));
  expect(events).toMatchObject(
    [0, 1, 2].map((more) => ({ type: 'queued', pool: 'pool', ahead: ASKING + more })),
  );
  for (const [index, name] of ['a', 'b', 'c'].entries()) {
    waiting.shift()!();
    await expect.poll(() => asked().at(-1)).toBe(name);
    expect(asked()).toHaveLength(ASKING + index + 1);
  }
  answerAll();
  await Promise.all(calls);
});

it('sends nothing for a call that leaves the queue, and passes its place on', async () => {
  const calls = await fill();
  const leaving = new AbortController();
  const reason = new Error('mine');
  const left = rejection(acquire('left', { signal: leaving.signal }));
  const late = rejection(acquire('late', { acquireTimeout: 100 }));
  calls.push(acquire('stays'));
  leaving.abort(reason);
  expect(await left).toBe(reason);
  expect(await late).toMatchObject({ name: 'AcquireTimeoutError', attempts: 0 });
  waiting.shift()!();
  await expect.poll(() => asked().at(-1)).toBe('stays');
  answerAll();
  await Promise.all(calls);
});

it('passes on the place of a call that aborts when its turn has just come', async () => {
  const calls = await fill();
  const leaving = new AbortController();
  const left = rejection(acquire('left', { signal: leaving.signal }));
  calls.push(acquire('next'));
  const first = calls[0]!.then(() => leaving.abort());
  waiting.shift()!();
  await Promise.all([first, left]);
  await expect.poll(() => asked()).toContain('next');
  answerAll();
  await Promise.all(calls);
});

it('delays neither a call inside a lease of the same pool nor a call for another pool', async () => {
  const calls = await fill();
  calls.push(callInside({ pool, session: session() as never }, () => acquire('inner')));
  await expect.poll(() => asked().at(-1)).toBe('inner');
  await using other = new BrowserPool('other', service.options);
  const elsewhere = acquire('elsewhere', {}, other);
  await expect.poll(() => asked().at(-1)).toBe('elsewhere');
  answerAll();
  await Promise.all([...calls, elsewhere]);
});
