import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { expect, it } from 'vitest';
import { traceStage, type StageTrace } from '../../src/shared/telemetry.js';

const trace = (): StageTrace => ({ pool: 'pool', run: 1, attempt: 1 });

it('does not change the trace without a subscriber', async () => {
  const given = trace();
  const complete = () => expect.unreachable('without a subscriber');
  expect(await traceStage('cleanup', given, async () => 'done', complete)).toBe('done');
  expect(given).toStrictEqual(trace());
});

it('does the work and rethrows its failure even if a listener throws', async () => {
  const channel = 'tracing:pooled-browser:cleanup:start';
  const uncaught: unknown[] = [];
  const others = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => uncaught.push(error));
  const listener = () => {
    throw new Error('of the listener');
  };
  subscribe(channel, listener);
  try {
    expect(
      await traceStage(
        'cleanup',
        trace(),
        async () => 'done',
        () => ({}),
      ),
    ).toBe('done');
    const failure = new Error('of the work');
    await expect(
      traceStage(
        'cleanup',
        trace(),
        () => Promise.reject(failure),
        () => ({}),
      ),
    ).rejects.toBe(failure);
    await expect
      .poll(() => uncaught)
      .toMatchObject([{ message: 'of the listener' }, { message: 'of the listener' }]);
  } finally {
    unsubscribe(channel, listener);
    process.removeAllListeners('uncaughtException');
    for (const other of others) process.on('uncaughtException', other);
  }
});
