import { once } from 'node:events';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { expect, it, vi } from 'vitest';
import { callListener, publish } from '../../src/shared/telemetry.js';

it('publishes events on its channel, and nothing to no one', () => {
  const seen: unknown[] = [];
  const collect = (event: unknown) => void seen.push(event);
  publish({ type: 'unheard' });
  subscribe('pooled-browser:event', collect);
  publish({ type: 'heard' });
  unsubscribe('pooled-browser:event', collect);
  publish({ type: 'unheard' });
  expect(seen).toStrictEqual([{ type: 'heard' }]);
});

it('calls a listener with the event, and does without one', () => {
  const listener = vi.fn();
  callListener(listener, { type: 'x' });
  callListener(undefined, { type: 'x' });
  expect(listener.mock.calls).toStrictEqual([[{ type: 'x' }]]);
});

it.each<[string, () => unknown]>([
  [
    'throws',
    () => {
      throw new Error('mine');
    },
  ],
  ['rejects', () => Promise.reject(new Error('mine'))],
  [
    'throws what is no error',
    () => {
      throw Object.create(null);
    },
  ],
])('warns of a listener that %s, and goes on', { timeout: 2000 }, async (_what, listener) => {
  // The runner would fail this file for a rejection that the code under test leaves alone: it is looked for here.
  const unhandled: unknown[] = [];
  const others = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', (error) => unhandled.push(error));
  try {
    const warned = once(process, 'warning');
    callListener(listener, {});
    const [warning] = (await Promise.race([
      warned,
      new Promise((resolve) => setTimeout(resolve, 500, [])),
    ])) as [Error?];
    expect(unhandled).toStrictEqual([]);
    expect(warning).toMatchObject({ name: 'PooledBrowserWarning' });
  } finally {
    process.removeAllListeners('unhandledRejection');
    for (const other of others) process.on('unhandledRejection', other);
  }
});
