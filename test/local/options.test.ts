import { inspect } from 'node:util';
import { expectTypeOf } from 'expect-type';
import { describe, expect, it } from 'vitest';
import {
  startLocalPool,
  type LocalPool,
  type LocalPoolEvent,
  type LocalPoolOptions,
} from '../../src/local.js';
import { startApi } from './support.js';

describe('options', () => {
  it.each<[string, unknown]>([
    ['colour', { colour: 'blue' }],
    ['pools', { pools: [] }],
    ['pools', { pools: [{}, {}] }],
    ['pools', { pools: [{ name: 'a' }, { name: 'b', id: 'a' }] }],
    ['pools[0]', { pools: ['default'] }],
    ['sise', { pools: [{ sise: 1 }] }],
    ['pools[1].size', { pools: [{}, { name: 'b', size: 0 }] }],
    ['pools[0].size', { pools: [{ size: 1.5 }] }],
    ['pools[0].name', { pools: [{ name: 'a b' }] }],
    ['pools[0].id', { pools: [{ id: '' }] }],
    ['pools[0].headless', { pools: [{ headless: 'no' }] }],
    ['pools[0].timeoutSeconds', { pools: [{ timeoutSeconds: 0 }] }],
    ['pools[0].fillRatePerMinute', { pools: [{ fillRatePerMinute: -1 }] }],
    ['pools[0].startUrl', { pools: [{ startUrl: 'example' }] }],
    ['pools[0].viewport', { pools: [{ viewport: 'big' }] }],
    ['pools[0].viewport.height', { pools: [{ viewport: { width: 1 } }] }],
    ['port', { port: 70_000 }],
    ['token', { token: 'short' }],
    ['token', { token: 'with a blank in it' }],
    ['executablePath', { executablePath: 7 }],
    ['args', { args: ['no-dashes'] }],
    ['args', { args: ['--user-data-dir=/home'] }],
    ['onLog', { onLog: true }],
    ['quirks', { quirks: 'none' }],
    ['quirks.unavailableStatus', { quirks: { unavailableStatus: 500 } }],
    ['quirks.bidiSession', { quirks: { bidiSession: 'old' } }],
    ['unheardOf', { quirks: { unheardOf: true } }],
  ])('names %s as the one at fault in %j', async (option, options) => {
    await expect(startLocalPool(options as LocalPoolOptions)).rejects.toMatchObject({
      name: 'InvalidOptionError',
      option,
      message: expect.stringContaining(option),
    });
  });

  it('takes an explicit undefined for not given', async () => {
    const pool = await startLocalPool({
      pools: undefined,
      port: undefined,
      token: undefined,
      quirks: undefined,
    });
    await pool.close();
  });
});

describe('the local pool object', () => {
  it('shows its token to nobody but who asks for it, and the log never sees it', async () => {
    const events: LocalPoolEvent[] = [];
    const api = await startApi({ token: 'a-token-of-mine', onLog: (event) => void events.push(event) });
    const session = await api.lease();
    await api.release(session);
    expect(api.pool.token).toBe('a-token-of-mine');
    const shown = [
      inspect(api.pool, { depth: 9, showHidden: true }),
      JSON.stringify({ ...api.pool }),
      JSON.stringify(events),
    ];
    for (const text of shown) {
      expect(text).not.toContain('a-token-of-mine');
      expect(text).not.toContain('eyJ');
    }
    expect(events.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['listening', 'leased', 'released', 'request']),
    );
  });

  it('makes up a strong token', async () => {
    const [one, two] = await Promise.all([startLocalPool(), startLocalPool()]);
    expect(one.token).toMatch(/^[\w-]{43}$/);
    expect(two.token).not.toBe(one.token);
    await Promise.all([one.close(), two.close()]);
  });

  it('survives a log that throws', async () => {
    const api = await startApi({
      onLog: () => {
        throw new Error('mine');
      },
    });
    await api.release(await api.lease());
  });

  it('counts the browsers of one pool, and of all', async () => {
    const api = await startApi({ pools: [{ name: 'a', id: 'id-a' }, { name: 'b' }] });
    expect(api.pool.pools).toEqual(['a', 'b']);
    const session = await api.lease({}, 'a');
    const zero = { starting: 0, waiting: 0, released: 0, destroyed: 0, expired: 0 };
    await expect.poll(() => api.pool.stats()).toEqual({ ...zero, idle: 1, leased: 1, granted: 1 });
    expect(api.pool.stats('id-a')).toEqual({ ...zero, idle: 0, leased: 1, granted: 1 });
    expect(() => api.pool.stats('c')).toThrow('There is no pool c. There are: a, b.');
    await api.release(session);
  });

  it('is typed', () => {
    expectTypeOf(startLocalPool).returns.resolves.toEqualTypeOf<LocalPool>();
    expectTypeOf<LocalPool>().toExtend<AsyncDisposable>();
  });
});
