import { afterEach, beforeEach, expect, it } from 'vitest';
import type { RunEvent } from '../../src/index.js';
import { callInside } from '../../src/lease/nesting.js';
import type { SessionLeaseOptions } from '../../src/lease/options.js';
import { BrowserPool } from '../../src/service/browser-pool.js';
import { FakeService, reply, session } from '../support/fake-service.js';
import { rejection } from '../service/support.js';
import { acquire as acquireFrom } from './support.js';

/** As many as may ask one pool at the same time. */
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

/** So many calls that no other may ask. */
async function fill(): Promise<Promise<unknown>[]> {
  const calls = Array.from({ length: ASKING }, (_, index) => acquire(`first-${index}`));
  await expect.poll(() => waiting.length).toBe(ASKING);
  return calls;
}

function answerAll(): void {
  for (const answer of waiting.splice(0)) answer();
}

const asked = () => service.of('acquire').map(({ body }) => body!['name']);

it('lets the next in line ask when one has its browser, in the order in which they came', async () => {
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

it('asks nothing for a call that leaves the line, and passes its place on', async () => {
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

it('passes the place on of a call that leaves just as its turn comes', async () => {
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

it('does not delay a call inside a lease of the same pool, nor one for another pool', async () => {
  const calls = await fill();
  calls.push(callInside({ pool, session: session() as never }, () => acquire('inner')));
  await expect.poll(() => asked().at(-1)).toBe('inner');
  await using other = new BrowserPool('other', service.options);
  const elsewhere = acquire('elsewhere', {}, other);
  await expect.poll(() => asked().at(-1)).toBe('elsewhere');
  answerAll();
  await Promise.all([...calls, elsewhere]);
});
