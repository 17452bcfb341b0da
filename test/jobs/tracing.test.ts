import { tracingChannel } from 'node:diagnostics_channel';
import { expect, onTestFinished } from 'vitest';
import type { RunEvent, StageTrace } from '../../src/index.js';
import { it } from './it.js';
import { range } from './support.js';

const CHANNEL = 'pooled-browser:callback';

/** Collects the events of the callback channel. Each trace is copied, because later events change it. */
function listen(): [event: string, trace: StageTrace][] {
  const seen: [string, StageTrace][] = [];
  const channel = tracingChannel<unknown, StageTrace>(CHANNEL);
  const note = (event: string) => (trace: unknown) => void seen.push([event, { ...(trace as StageTrace) }]);
  const subscribers = { start: note('start'), asyncEnd: note('asyncEnd'), error: note('error') } as never;
  channel.subscribe(subscribers);
  onTestFinished(() => channel.unsubscribe(subscribers));
  return seen;
}

it('traces each task as a callback of its lease, with the index of its input', async ({ bench }) => {
  const seen = listen();
  const runs = new Map<string, number>();
  const onEvent = (event: RunEvent) => {
    if (event.type === 'acquired') runs.set(event.sessionId, event.run);
  };
  const options = { concurrency: 2, pagesPerLease: 2, onEvent };
  const outcomes = await bench.run(range(6), () => 'the value of the task', options);
  for (const { index, session } of outcomes) {
    const sessionId = session.session_id;
    const facts = { pool: 'pool', run: runs.get(sessionId)!, attempt: 1, sessionId, index };
    expect(seen.filter(([, trace]) => trace.index === index)).toStrictEqual([
      ['start', facts],
      ['asyncEnd', { ...facts, result: undefined }],
    ]);
  }
  expect(seen).toHaveLength(2 * 6);
});

it('traces each attempt of a task, with its error', async ({ bench }) => {
  const seen = listen();
  const error = new Error('of the first attempt');
  const task = ({ attempt }: { attempt: number }) => {
    if (attempt === 1) throw error;
  };
  await bench.run(['a'], task, { retries: 1 });
  expect(seen.map(([event, trace]) => [event, trace.index, trace.error])).toEqual([
    ['start', 0, undefined],
    ['error', 0, error],
    ['asyncEnd', 0, error],
    ['start', 0, undefined],
    ['asyncEnd', 0, undefined],
  ]);
});
