import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { attachBrowser, BrowserPool } from '../../src/index.js';
import { leaseSession } from '../../src/calls/lease-browser.js';
import { cdp, kernel, type BrowserService } from '../../src/services.js';
import { rejection } from '../pool/support.js';
import { PlayedLease } from '../support/played-lease.js';

let played: PlayedLease;
let pool: BrowserPool<object>;
/** Whether the browser refuses to clear its data. */
let isStubborn: boolean;
/** What the browser had received when the library connected, each time. */
let connectedAfter: string[][];
let loads: number;

beforeEach(async () => {
  [isStubborn, connectedAfter, loads] = [false, [], 0];
  played = await PlayedLease.start({
    connect: () => connectedAfter.push(played.browser.received.splice(0)),
    load: async () => loads++,
  });
  const { onText } = played.browser;
  played.browser.onText = (text, client) => {
    const { id, method } = JSON.parse(text) as { id: number; method: string };
    if (isStubborn && method === 'Storage.clearDataForOrigin')
      client.send(JSON.stringify({ id, error: { message: 'no' } }));
    else onText(text, client);
  };
  pool = poolOf('mine');
});

afterEach(async () => {
  await pool.close();
  await played[Symbol.asyncDispose]();
});

function poolOf(name: string): BrowserPool<object> {
  return new BrowserPool(name, { service: cdp(played.browser.url) });
}

const run = (...[fn, options]: Parameters<PlayedLease['run']>) =>
  played.run(fn, options, pool as BrowserPool);
const commands = (texts: readonly string[]) =>
  texts.map((text) => (JSON.parse(text) as { method: string }).method);

describe('a browser that nothing can destroy', () => {
  it.for<[how: string, spoil: () => ReturnType<typeof run>]>([
    ['refused to clear its data', () => ((isStubborn = true), run())],
    ['was used by a callback that timed out', () => run(() => new Promise(() => {}), { timeout: 20 })],
    ['was to be destroyed', () => ((isStubborn = true), run(undefined, { release: 'destroy' }))],
    [
      'was leased for another program',
      async () => ({ run: await (await leaseSession(pool as BrowserPool, {})).end({ status: 'ok' }) }),
    ],
  ])('is reported as left if it %s, and cleaned before the next lease', async ([, spoil]) => {
    const ended = await spoil();
    expect(ended.run).toMatchObject({ released: 'left' });
    expect(ended.run!.cleanupErrors.at(-1)).toMatchObject({ name: 'CleanupError' });
    expect(ended.run!.cleanupErrors.at(-1)!.message).toContain('stays open with data of this lease');

    isStubborn = true;
    const failed = await run();
    expect(failed.error).toMatchObject({ name: 'ConnectError' });
    expect((failed.error as Error).message).toContain('still has data of an earlier lease');
    expect(failed.run).toMatchObject({ released: 'left', cleanupErrors: [] });
    isStubborn = false;
    played.browser.received.length = 0;
    expect((await run()).run).toMatchObject({ released: 'reused', cleanupErrors: [] });
    expect(commands(connectedAfter.at(-1)!)).toContain('Storage.clearDataForOrigin');
    // It is clean now.
    played.browser.received.length = 0;
    await run();
    expect(connectedAfter.at(-1)).toEqual([]);
  });

  it('is cleaned instead if it should be destroyed, and stays as it is if it should be reused', async () => {
    const { received } = played.browser;
    expect((await run(undefined, { release: 'destroy' })).run).toMatchObject({ released: 'reused' });
    expect(commands(received)).toContain('Storage.clearDataForOrigin');
    received.length = 0;
    const fails = () => {
      throw new Error('mine');
    };
    expect((await run(fails, { release: 'reuse' })).run).toMatchObject({ released: 'reused' });
    expect(received).toEqual([]);
    await run();
    expect(connectedAfter.at(-1)).toEqual([]);
  });

  it('is not changed after a connect that failed', async () => {
    played.connector.connect = () => Promise.reject(new Error('no page'));
    expect((await run()).run).toMatchObject({ released: 'left' });
    expect(played.browser.received).toEqual([]);
  });
});

describe('a browser without a service', () => {
  const waits = { acquireTimeout: 50, release: 'reuse', replays: 'off' } as const;

  it('has one lease at a time, also while it is detached, and of pools with several names', async () => {
    const { connector } = played;
    await using other = poolOf('other');
    const held = await played.leaseIn(pool);
    const lease = () => rejection(played.leaseIn(other, waits));
    expect(await lease()).toMatchObject({ name: 'AcquireTimeoutError' });
    const detached = await held.detach();
    expect(await lease()).toMatchObject({ name: 'AcquireTimeoutError' });
    const attached = await attachBrowser(detached, { pool, connector });
    expect(await lease()).toMatchObject({ name: 'AcquireTimeoutError' });
    const twice = await rejection(attachBrowser(detached, { pool, connector }));
    expect(twice.message).toContain('Another lease of this process uses the browser');
    await attached.release();
    await (await played.leaseIn(other)).release();
  });

  it('keeps the place of a detached lease that could not be attached', async () => {
    const { connector } = played;
    const detached = await (await played.leaseIn(pool)).detach();
    const broken = { ...connector, connect: () => Promise.reject(new Error('no page')) };
    await rejection(attachBrowser(detached, { pool, connector: broken }));
    expect(await rejection(played.leaseIn(pool, waits))).toMatchObject({ name: 'AcquireTimeoutError' });
    await (await attachBrowser(detached, { pool, connector })).release();
  });

  it('reports no browser of a call that is aborted before its connection, whenever the abort comes', async () => {
    const types = new Set<string>();
    for (let microtasks = 0; microtasks < 20; microtasks++) {
      const abort = new AbortController();
      const abortLater = async () => {
        for (let count = 0; count < microtasks; count++) await Promise.resolve();
        abort.abort(new Error('mine'));
      };
      const onEvent = ({ type }: { type: string }) => {
        types.add(type);
        if (type === 'acquiring') void abortLater();
      };
      expect((await rejection(played.leaseIn(pool, { signal: abort.signal, onEvent }))).message).toBe('mine');
    }
    await pool.close();
    expect([...types]).toContain('acquiring');
    expect([...types]).not.toContain('grant-orphaned');
  });

  it('loads the automation library while a call waits for the browser', async () => {
    const held = await played.leaseIn(pool);
    const waiting = played.leaseIn(pool);
    await expect.poll(() => loads).toBe(2);
    await held.release();
    await (await waiting).release();
  });
});

it('counts an attached lease of a service, which has its browser already, for the limit', async () => {
  await using limited = new BrowserPool('limited', { ...played.service.options, limit: 1 });
  const { connector } = played;
  const detached = await (await played.leaseIn(limited)).detach();
  const held = await played.leaseIn(limited);
  const attached = await attachBrowser(detached, { pool: limited, connector });
  await held.release();
  expect(await rejection(played.leaseIn(limited, { acquireTimeout: 50 }))).toMatchObject({
    name: 'AcquireTimeoutError',
  });
  await attached.release();
  await (await played.leaseIn(limited)).release();
});

it('opens no second connection, which would lease another browser, while a slow connect lasts', async () => {
  const service: BrowserService = {
    ...kernel,
    grant: (...args) => ({ ...kernel.grant(...args), endsWithConnection: true }),
  };
  await using slow = await PlayedLease.start({ connect: () => sleep(300) });
  await using own = new BrowserPool('test', { ...slow.service.options, service });
  const { run: first } = await slow.run(undefined, { connectTimeout: 600 }, own as BrowserPool);
  expect(first).toMatchObject({ value: 'value' });
  expect(slow.browser.dialled).toBe(1);
  // Elsewhere, unresponsive pages are closed after a third of the time, over a connection of their own.
  await slow.run(undefined, { connectTimeout: 600 });
  expect(slow.browser.dialled).toBe(3);
});
