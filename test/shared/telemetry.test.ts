import { once } from 'node:events';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { expect, it, vi } from 'vitest';
import { callListener, publish } from '../../src/shared/telemetry.js';

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

it.each<[string, () => unknown]>([
  [
    'throws',
    () => {
      throw new Error('mine');
    },
  ],
  ['rejects', () => Promise.reject(new Error('mine'))],
  [
    'throws a value that is not an error',
    () => {
      throw Object.create(null);
    },
  ],
])('warns about a listener that %s, and continues', async (_what, listener) => {
  // The runner fails this file for an unhandled rejection, so this test checks for rejections.
  const unhandled: unknown[] = [];
  const others = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', (error) => unhandled.push(error));
  try {
    const warned = once(process, 'warning');
    callListener(listener, {});
    const [warning] = (await warned) as [Error];
    expect(unhandled).toStrictEqual([]);
    expect(warning).toMatchObject({ name: 'PooledBrowserWarning' });
  } finally {
    process.removeAllListeners('unhandledRejection');
    for (const other of others) process.on('unhandledRejection', other);
  }
});
