import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { BrowserPool, type RunEvent } from '../../src/index.js';
import { LeaseCall } from '../../src/lease/lease-call.js';
import { readLeaseOptions, sessionLeaseOptions } from '../../src/lease/options.js';

const acquiring = { type: 'acquiring', attempt: 1, waited: 0, timeLeft: 1 } as const;

function newCall(idOrName: string, onEvent?: (event: RunEvent) => void): LeaseCall {
  const pool = new BrowserPool(idOrName, { baseUrl: 'http://127.0.0.1:9/', token: 'a-token' });
  return new LeaseCall(pool, readLeaseOptions(sessionLeaseOptions, { onEvent }, { caller: 'test' }));
}

it('emits each step to the listener and the diagnostics channel, with run, pool and time', async () => {
  const [heard, published]: [RunEvent[], unknown[]] = [[], []];
  const listen = (event: unknown) => void published.push(event);
  subscribe('pooled-browser:event', listen);
  const call = newCall('crawlers', (event) => heard.push(event));
  call.emit({ type: 'connected', sessionId: 's' });
  await sleep(30);
  call.emit({ type: 'connected', sessionId: 't' });
  unsubscribe('pooled-browser:event', listen);
  expect(published).toEqual(heard);
  expect(heard).toMatchObject([
    { type: 'connected', sessionId: 's', pool: 'crawlers' },
    { type: 'connected', sessionId: 't', pool: 'crawlers' },
  ]);
  const [first, second] = heard as [RunEvent, RunEvent];
  expect(second.run).toBe(first.run);
  expect(second.elapsed - first.elapsed).toBeGreaterThanOrEqual(25);
  expect(second.elapsed).toBeLessThan(20_000);
});

it('numbers the runs of the process in order', () => {
  const numbers: number[] = [];
  for (let run = 0; run < 3; run++) {
    const call = newCall('p', (event) => numbers.push(event.run));
    call.emit({ type: 'connected', sessionId: 's' });
  }
  expect(numbers[0]).toBeGreaterThan(0);
  expect(numbers).toEqual([numbers[0], numbers[0]! + 1, numbers[0]! + 2]);
});

it('counts acquire requests, and those with an unknown outcome', () => {
  const call = newCall('p');
  call.emit(acquiring);
  call.emit(acquiring);
  call.emit({ type: 'outcome-unknown', pool: 'p', error: new Error('reset') });
  call.emit({ type: 'connected', sessionId: 's' });
  expect([call.acquireAttempts, call.unknownAcquires]).toEqual([2, 1]);
  expect(call.cleanupErrors).toEqual([]);
});

it('sums the time of each stage, also if it fails, and omits stages that were not reached', async () => {
  const call = newCall('p');
  expect(await call.time('connect', { attempt: 1 }, () => sleep(30, 'value'))).toBe('value');
  const failing = call.time('connect', { attempt: 1 }, async () => {
    await sleep(30);
    throw new Error('mine');
  });
  await expect(failing).rejects.toThrow('mine');
  const { connect, total, ...others } = call.counts.timings;
  expect(connect).toBeGreaterThanOrEqual(55);
  expect(connect).toBeLessThan(20_000);
  expect(total).toBeGreaterThanOrEqual(connect! - 1);
  expect(total).toBeLessThan(20_000);
  expect(others).toEqual({});
  expect([Number.isInteger(connect), Number.isInteger(total)]).toEqual([true, true]);
});
