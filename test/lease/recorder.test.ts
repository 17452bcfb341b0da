import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { RunEvent } from '../../src/index.js';
import { Recorder } from '../../src/lease/recorder.js';

const acquiring = { type: 'acquiring', pool: 'p', attempt: 1, waited: 0, timeLeft: 1 } as const;

it('tells the listener and the diagnostics channel each step, with the run, its pool and the time', async () => {
  const [heard, published]: [RunEvent[], unknown[]] = [[], []];
  const listen = (event: unknown) => void published.push(event);
  subscribe('pooled-browser:event', listen);
  const recorder = new Recorder('crawlers', (event) => heard.push(event));
  recorder.tell({ type: 'connected', sessionId: 's' });
  await sleep(30);
  recorder.tell({ type: 'connected', sessionId: 't' });
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

it('gives each run of the process a number of its own, in order', () => {
  const numbers: number[] = [];
  for (let run = 0; run < 3; run++) {
    const recorder = new Recorder('p', (event) => numbers.push(event.run));
    recorder.tell({ type: 'connected', sessionId: 's' });
  }
  expect(numbers[0]).toBeGreaterThan(0);
  expect(numbers).toEqual([numbers[0], numbers[0]! + 1, numbers[0]! + 2]);
});

it('counts acquire requests, and those whose outcome is not known', () => {
  const recorder = new Recorder('p', undefined);
  recorder.tell(acquiring);
  recorder.tell(acquiring);
  recorder.tell({ type: 'outcome-unknown', pool: 'p', error: new Error('reset') });
  recorder.tell({ type: 'connected', sessionId: 's' });
  expect([recorder.attempts, recorder.unknownOutcomes]).toEqual([2, 1]);
  expect(recorder.cleanupErrors).toEqual([]);
});

it('adds up the time of each stage, however it ends, and leaves out those not reached', async () => {
  const recorder = new Recorder('p', undefined);
  expect(await recorder.time('connect', () => sleep(30, 'value'))).toBe('value');
  const failing = recorder.time('connect', async () => {
    await sleep(30);
    throw new Error('mine');
  });
  await expect(failing).rejects.toThrow('mine');
  const { connect, total, ...others } = recorder.timings;
  expect(connect).toBeGreaterThanOrEqual(55);
  expect(connect).toBeLessThan(20_000);
  expect(total).toBeGreaterThanOrEqual(connect! - 1);
  expect(total).toBeLessThan(20_000);
  expect(others).toEqual({});
  expect([Number.isInteger(connect), Number.isInteger(total)]).toEqual([true, true]);
});
