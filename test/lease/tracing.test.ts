import { AsyncLocalStorage } from 'node:async_hooks';
import { tracingChannel } from 'node:diagnostics_channel';
import { afterEach, expect, it } from 'vitest';
import type { Stage, StageTrace } from '../../src/index.js';
import { expectNoSecrets } from '../support/collected.js';
import { PlayedLease } from '../support/played-lease.js';

const STAGES: readonly Stage[] = ['acquire', 'connect', 'callback', 'cleanup', 'replays', 'release'];
const EVENTS = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;

const undo: (() => void)[] = [];
afterEach(() => undo.splice(0).forEach((unsubscribe) => unsubscribe()));

interface Seen {
  stage: Stage;
  event: (typeof EVENTS)[number];
  trace: StageTrace;
  /** A copy: later events change the trace. */
  atThatTime: object;
}

/** Collects the messages of all tracing channels. */
function listen(): Seen[] {
  const seen: Seen[] = [];
  for (const stage of STAGES) {
    const channel = tracingChannel<unknown, StageTrace>(`pooled-browser:${stage}`);
    const note = (event: Seen['event']) => (trace: unknown) =>
      void seen.push({ stage, event, trace: trace as StageTrace, atThatTime: { ...(trace as StageTrace) } });
    const subscribers = Object.fromEntries(EVENTS.map((event) => [event, note(event)])) as never;
    channel.subscribe(subscribers);
    undo.push(() => channel.unsubscribe(subscribers));
  }
  return seen;
}

it('traces the start and the end of each stage, with its run and session, and without secrets', async () => {
  await using played = await PlayedLease.start();
  const seen = listen();
  await played.run(() => 'the value of the callback');
  const facts = { pool: 'test', run: played.events[0]!.run, attempt: 1 };
  const sessionId = 'session-1';
  for (const stage of STAGES) {
    const told = seen.filter((one) => one.stage === stage);
    expect(told.map(({ event }) => event)).toEqual(['start', 'end', 'asyncStart', 'asyncEnd']);
    expect(new Set(told.map(({ trace }) => trace)).size, `${stage} has one object`).toBe(1);
    expect(told[0]!.atThatTime).toStrictEqual(stage === 'acquire' ? facts : { ...facts, sessionId });
    expect(told.at(-1)!.atThatTime).toStrictEqual({ ...facts, sessionId, result: undefined });
  }
  expectNoSecrets(seen);
});

it("traces the error of a stage: the caller's own, and that of a release", async () => {
  await using played = await PlayedLease.start();
  played.service.script('release', { status: 403 });
  const seen = listen();
  const mine = new Error('mine');
  expect((await played.run(() => Promise.reject(mine))).error).toBe(mine);
  const errors = seen.filter(({ event }) => event === 'error');
  expect(errors.map(({ stage }) => stage)).toEqual(['callback', 'release']);
  expect(errors[0]!.trace.error).toBe(mine);
  expect(errors[1]!.trace.error).toMatchObject({ code: 'ERR_RELEASE' });
});

it('traces each connection of a lease, and no stage that does not happen', async () => {
  await using played = await PlayedLease.start();
  const seen = listen();
  const lease = await played.lease({ release: 'leave', replays: 'off' });
  await lease.reconnect();
  await lease.release();
  const starts = seen.filter(({ event }) => event === 'start').map(({ stage }) => stage);
  expect(starts).toEqual(['acquire', 'connect', 'connect']);
});

it('passes a bound store to the callback, and to no other stage', async () => {
  await using played = await PlayedLease.start();
  const store = new AsyncLocalStorage<string>();
  const { start } = tracingChannel<string, StageTrace>('pooled-browser:callback');
  start.bindStore(store, ({ sessionId }) => `inside ${sessionId}`);
  undo.push(() => start.unbindStore(store));
  expect((await store.run('outside', () => played.run(() => store.getStore()))).value).toBe(
    'inside session-1',
  );
  expect(store.getStore()).toBeUndefined();
});
