import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { startLocalPool, type LocalPoolOptions } from '../../src/local.js';
import { tokenIn } from './pages/support.js';
import { startApi } from './support.js';

it.each<[option: string, options: unknown, message?: string]>([
  ['pool', { pool: [] }, 'startLocalPool has no option pool. Did you mean pools?'],
  ['pools', { pools: [] }],
  ['pools', { pools: [{}, {}] }],
  ['pools', { pools: [{ name: 'a' }, { name: 'b', id: 'a' }] }],
  ['pools[0]', { pools: ['default'] }],
  ['pools[0].sise', { pools: [{ sise: 1 }] }, 'pools[0] has no option sise. Did you mean size?'],
  ['pools[1].size', { pools: [{}, { name: 'b', size: 0 }] }],
  ['pools[0].name', { pools: [{ name: 'a b' }] }],
  ['pools[0].timeoutSeconds', { pools: [{ timeoutSeconds: 0 }] }],
  ['port', { port: 70_000 }],
  ['token', { token: 's3cr3t' }, 'token must be a string of at least 8 visible ASCII characters.'],
  ['token', { token: 'with a blank in it' }],
  ['args', { args: ['no-dashes'] }],
  [
    'args',
    { args: ['--user-data-dir=/home'] },
    "args must not contain '--user-data-dir=/home': the pool sets this flag.",
  ],
  ['quirks.unavailableStatus', { quirks: { unavailableStatus: 500 } }],
  ['recording.folder', { recording: { folder: '/dev/null' } }],
  ['recording.maxTotalBytes', { recording: { maxBytes: 2, maxTotalBytes: 1 } }],
])('names the option %s in the error for %j', async (option, options, message) => {
  await expect(startLocalPool(options as LocalPoolOptions)).rejects.toMatchObject({
    name: 'InvalidOptionError',
    option,
    message: message ?? expect.stringContaining(option.split('.').at(-1)!),
  });
});

describe('the local pool object', () => {
  it('shows its secrets only in the properties token and dashboardUrl, and never in an event', async () => {
    const api = await startApi({ token: 'a-token-of-mine' });
    await api.release(await api.lease());
    expect(api.pool.token).toBe('a-token-of-mine');
    const shown = [api.pool, { ...api.pool }, api.events].flatMap((value) => [
      inspect(value, { depth: 9, showHidden: true }),
      JSON.stringify(value),
    ]);
    const link = new URL(api.pool.dashboardUrl);
    expect(link.href).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?token=/);
    for (const text of shown) {
      expect(text).not.toMatch(/a-token-of-mine|eyJ|token=/);
      expect(text).not.toContain(tokenIn(link.href));
    }
    const types = api.events.map(({ type }) => type);
    expect(types).toEqual(expect.arrayContaining(['listening', 'leased', 'released', 'request']));
  });

  it('has one pool and a random token by default, and if these options are undefined', async () => {
    const given = { pools: undefined, port: undefined, token: undefined, quirks: undefined };
    await using one = await startLocalPool();
    await using two = await startLocalPool(given);
    expect(two.pools).toEqual(['default']);
    expect(two.token).toMatch(/^[\w-]{43}$/);
    expect(one.token).not.toBe(two.token);
  });

  it('continues when onLog throws', async () => {
    const onLog = () => {
      throw new Error('an error of the caller');
    };
    const api = await startApi({ onLog });
    expect(await api.release(await api.lease())).toBe(204);
    const types = api.events.map(({ type }) => type);
    expect(types).toEqual(expect.arrayContaining(['listening', 'leased', 'released']));
  });

  it('counts the browsers of one pool and of all pools', async () => {
    const api = await startApi({ pools: [{ name: 'a', id: 'id-a' }, { name: 'b' }] });
    expect(api.pool.pools).toEqual(['a', 'b']);
    const session = await api.lease({}, 'a');
    const zero = { starting: 0, waiting: 0, released: 0, destroyed: 0, expired: 0 };
    await expect.poll(() => api.pool.stats()).toEqual({ ...zero, idle: 1, leased: 1, granted: 1 });
    expect(api.pool.stats('id-a')).toEqual({ ...zero, idle: 0, leased: 1, granted: 1 });
    expect(() => api.pool.stats('c')).toThrow('There is no pool c. There are: a, b.');
    await api.release(session);
  });
});
