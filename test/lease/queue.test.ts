import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { stopClock } from '../support/fake-clock.js';
import { BrowserPool, type RunOptions } from '../../src/index.js';
import { reply } from '../support/fake-service.js';
import { PlayedLease } from '../support/played-lease.js';

/** Number of calls that may send requests to one pool at the same time. */
const ASKING = 32;

let played: PlayedLease;
let waiting: (() => void)[];

beforeEach(async () => {
  played = await PlayedLease.start();
  waiting = [];
});

afterEach(() => played[Symbol.asyncDispose]());

const grant = () => ({ status: 200, json: played.session() });

function acquire(name: string, options: RunOptions = {}, pool?: BrowserPool) {
  return played.run(undefined, { name, release: 'leave', replays: 'off', ...options }, pool);
}

const asked = () => played.service.of('acquire').map(({ body }) => body!['name']);

describe('the queue of a pool', () => {
  let calls: Promise<unknown>[];

  /** As many calls as may send requests: further calls wait. */
  beforeEach(async () => {
    played.service.script('acquire', (response) => void waiting.push(() => reply(response, grant())));
    calls = Array.from({ length: ASKING }, (_, index) => acquire(`first-${index}`));
    await expect.poll(() => waiting.length).toBe(ASKING);
  });

  afterEach(async () => {
    played.service.script('acquire', grant());
    for (const answer of waiting.splice(0)) answer();
    await Promise.all(calls);
  });

  it('lets the next call send its request when another call has its browser', async () => {
    for (const name of ['a', 'b', 'c']) calls.push(acquire(name));
    await expect.poll(() => played.told('queued').length).toBe(3);
    expect(played.told('queued')).toMatchObject(
      [0, 1, 2].map((more) => ({ pool: 'test', ahead: ASKING + more })),
    );
    for (const [index, name] of ['a', 'b', 'c'].entries()) {
      waiting.shift()!();
      await expect.poll(() => asked().at(-1)).toBe(name);
      expect(asked()).toHaveLength(ASKING + index + 1);
    }
  });

  it('sends nothing for a call that leaves it, and passes its place on', async () => {
    const leaving = new AbortController();
    const left = acquire('left', { signal: leaving.signal });
    const late = acquire('late', { acquireTimeout: 100 });
    calls.push(acquire('stays'));
    leaving.abort('mine');
    expect((await left).error).toBe('mine');
    expect((await late).error).toMatchObject({ name: 'AcquireTimeoutError', attempts: 0 });
    waiting.shift()!();
    await expect.poll(() => asked().at(-1)).toBe('stays');
  });

  it('passes on the place of a call that aborts when it has just become the first', async () => {
    const leaving = new AbortController();
    const onEvent: RunOptions['onEvent'] = ({ type }) => type === 'acquiring' && leaving.abort();
    const left = acquire('left', { signal: leaving.signal, onEvent });
    calls.push(acquire('next'));
    waiting.shift()!();
    await left;
    await expect.poll(() => asked()).toContain('next');
  });

  it('delays no call for another pool', async () => {
    const other = new BrowserPool('other', played.service.options);
    calls.push(acquire('elsewhere', {}, other).then(() => other.close()));
    await expect.poll(() => asked()).toContain('elsewhere');
  });
});

it('a 504 after the requested wait is no outage, in which calls would send their requests one at a time', async () => {
  const CALLS = 4;
  let [seen, open, mostLater] = [0, 0, 0];
  played.service.script('acquire', async (response) => {
    open++;
    // The first requests arrive all together in any case.
    if (++seen > CALLS) mostLater = Math.max(mostLater, open);
    await sleep(600);
    open--;
    reply(response, { status: 504 });
  });
  const controller = new AbortController();
  const options = { pollTimeout: 1000, signal: controller.signal };
  const calls = Array.from({ length: CALLS }, (_, index) => acquire(`call-${index}`, options));
  await expect.poll(() => mostLater).toBeGreaterThan(1);
  controller.abort(new Error('enough'));
  await Promise.all(calls);
});

it.each([503, 429])(
  'a Retry-After of years after %i keeps later calls from the service for an hour',
  async (status) => {
    const pass = stopClock();
    played.service.script('acquire', { status, headers: { 'retry-after': String(1e9) } });
    const refused = new AbortController();
    const { signal } = refused;
    await acquire('refused', { signal, onEvent: ({ type }) => type === 'waiting' && refused.abort() });
    played.service.script('acquire', grant());
    pass(3_599_000);
    expect(await acquire('early', { acquireTimeout: 100 })).toMatchObject({
      error: { code: 'ERR_ACQUIRE_TIMEOUT' },
    });
    pass(1000);
    expect(await acquire('later', { acquireTimeout: 10_000 })).toMatchObject({ value: 'value' });
    expect(asked()).toEqual(['refused', 'later']);
  },
);
