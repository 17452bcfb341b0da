import { once } from 'node:events';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { expect, it, onTestFinished, vi } from 'vitest';
import { callListener, publish, traceStage, type StageTrace } from '../../src/shared/telemetry.js';

/** Collects errors that would end the process, in place of the runner, which fails the file for them. */
function collect(event: 'uncaughtException' | 'unhandledRejection'): unknown[] {
  const errors: unknown[] = [];
  const others = process.listeners(event as 'uncaughtException');
  process.removeAllListeners(event);
  process.on(event, (error: unknown) => void errors.push(error));
  onTestFinished(() => {
    process.removeAllListeners(event);
    for (const other of others) process.on(event, other);
  });
  return errors;
}

it('publishes events on its channel if there is a subscriber', () => {
  const seen: unknown[] = [];
  const collect = (event: unknown) => void seen.push(event);
  publish({ type: 'unheard' });
  subscribe('pooled-browser:event', collect);
  publish({ type: 'heard' });
  unsubscribe('pooled-browser:event', collect);
  publish({ type: 'unheard' });
  expect(seen).toStrictEqual([{ type: 'heard' }]);
});

it('calls a listener with the event; a listener is optional', () => {
  const listener = vi.fn();
  callListener(listener, { type: 'x' });
  callListener(undefined, { type: 'x' });
  expect(listener.mock.calls).toStrictEqual([[{ type: 'x' }]]);
});

const rethrow = (error: unknown) => () => {
  throw error;
};

it.each<[string, () => unknown]>([
  ['throws', rethrow(new Error('mine'))],
  ['rejects', () => Promise.reject(new Error('mine'))],
  ['throws a value that is not an error', rethrow(Object.create(null))],
])('warns about a listener that %s, and continues', async (_what, listener) => {
  const unhandled = collect('unhandledRejection');
  const warned = once(process, 'warning');
  callListener(listener, {});
  const [warning] = (await warned) as [Error];
  expect(unhandled).toStrictEqual([]);
  expect(warning).toMatchObject({ name: 'PooledBrowserWarning' });
});

const trace = (): StageTrace => ({ pool: 'pool', run: 1, attempt: 1 });

it('does the work and rethrows its failure even if a listener of the tracing channel throws', async () => {
  const channel = 'tracing:pooled-browser:cleanup:start';
  const uncaught = collect('uncaughtException');
  const listener = rethrow(new Error('of the listener'));
  subscribe(channel, listener);
  onTestFinished(() => void unsubscribe(channel, listener));
  const run = (work: () => Promise<string>) => traceStage('cleanup', trace(), work);
  expect(await run(async () => 'done')).toBe('done');
  const failure = new Error('of the work');
  await expect(run(() => Promise.reject(failure))).rejects.toBe(failure);
  const message = 'of the listener';
  await expect.poll(() => uncaught).toMatchObject([{ message }, { message }]);
});
