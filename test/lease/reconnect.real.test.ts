import { describe, expect, it } from 'vitest';
import {
  BrowserLostError,
  ConnectionDroppedError,
  type PooledBrowser,
  type RunEvent,
} from '../../src/index.js';
import { DRIVERS, type AnyLease, type Driver } from '../support/drivers.js';
import { FaultBench } from '../support/fault-bench.js';
import { join, refuse } from '../support/fault-road.js';
import { titled, useLocalPool } from '../support/local.js';

const used = useLocalPool({ pools: [{ name: 'test', size: 2 }] });

describe.each(DRIVERS)('$name', (driver) => {
  it('continues with the same page after the connection was lost between two calls', async () => {
    await using held = await hold(driver);
    await held.browser.use(({ page }) => page.goto(titled('before')));
    const { page } = held.browser;
    held.bench.road.lose('reset');
    await held.told('reconnected');
    expect(held.types).toContain('connection-dropped');
    expect(held.browser.page).not.toBe(page);
    expect(await held.browser.use((lease) => lease.page.title())).toBe('before');
    expect(held.browser.signal.aborted).toBe(false);
  });

  it('fails a call that was under way, and never repeats it', async () => {
    await using held = await hold(driver);
    const count = 'globalThis.calls = (globalThis.calls ?? 0) + 1';
    const call = held.browser.use(({ page }) => page.evaluate(`${count}; new Promise(() => {})`));
    const failure = call.catch((error: unknown) => error);
    // The browser executes commands in order, so the first call has reached it.
    await held.browser.use(({ page }) => page.evaluate('1'));
    held.bench.road.lose('reset');
    expect(await failure).toBeInstanceOf(ConnectionDroppedError);
    expect(await held.browser.use(({ page }) => page.evaluate('globalThis.calls'))).toBe(1);
  });

  it('repeats a reconnect that fails', async () => {
    await using held = await hold(driver);
    const { road } = held.bench;
    road.play(refuse(503), (socket) => socket.resetAndDestroy(), join);
    road.lose('end');
    await held.told('connection-dropped');
    expect(await held.browser.use(({ page }) => page.evaluate('1 + 1'))).toBe(2);
    expect(road.dialled).toBeGreaterThanOrEqual(4);
  });

  it('reports the browser as lost (expired) when the service refuses the session', async () => {
    await using held = await hold(driver);
    held.bench.road.play(refuse(404));
    held.bench.road.lose('reset');
    const error: unknown = await held.browser
      .use(({ page }) => page.title())
      .catch((reason: unknown) => reason);
    // The call may have been interrupted.
    if (error instanceof ConnectionDroppedError) await held.told('browser-lost');
    else expect(error).toBeInstanceOf(BrowserLostError);
    expect(held.browser.signal.reason).toMatchObject({ name: 'BrowserLostError', reason: 'expired' });
    await expect(held.browser.use(() => 1)).rejects.toBe(held.browser.signal.reason);
    await expect(held.browser.reconnect()).rejects.toBe(held.browser.signal.reason);
    expect(await held.browser.release()).toMatchObject({ released: 'destroyed' });
  });

  it('releases the browser during a reconnect', async () => {
    await using held = await hold(driver);
    // The connection is accepted and never answered.
    const { road } = held.bench;
    road.play(() => {});
    const { dialled } = road;
    road.lose('reset');
    await expect.poll(() => road.dialled).toBeGreaterThan(dialled);
    expect(held.connects).toBe(2);
    const tail = await held.browser.release();
    expect(tail.released).toBe('destroyed');
    expect(held.bench.released.size).toBe(1);
  });

  it('replaces the connection with reconnect()', async () => {
    await using held = await hold(driver, { reconnect: false });
    await held.browser.page.goto(titled('kept'));
    await Promise.all([held.browser.reconnect(), held.browser.reconnect()]);
    expect(held.connects).toBe(2);
    expect(await held.browser.page.title()).toBe('kept');
  });

  it('reconnects at the next use with reconnect: lazy', async () => {
    await using held = await hold(driver, { reconnect: 'lazy' });
    held.bench.road.lose('reset');
    await held.told('connection-dropped');
    expect(held.connects).toBe(1);
    expect(await held.browser.use(({ page }) => page.evaluate('2'))).toBe(2);
    expect(held.connects).toBe(2);
  });
});

describe('a session without a connection', () => {
  it('emits session-expiring before its end, and not while something is connected', async () => {
    await using held = await hold(DRIVERS[0]!, { reconnect: 'lazy' }, { timeout_seconds: 2 });
    expect(held.types).not.toContain('session-expiring');
    held.bench.road.lose('reset');
    await held.told('session-expiring');
    expect(held.events.find(({ type }) => type === 'session-expiring')).toMatchObject({ timeLeft: 1000 });
  });
});

/** A lease whose network connection can fail. */
class Held implements AsyncDisposable {
  readonly bench: FaultBench;
  readonly browser: PooledBrowser<AnyLease>;
  readonly events: RunEvent[];

  constructor(bench: FaultBench, browser: PooledBrowser<AnyLease>, events: RunEvent[]) {
    this.bench = bench;
    this.browser = browser;
    this.events = events;
  }

  get types(): string[] {
    return this.events.map(({ type }) => type);
  }

  /** Number of attempts to connect. A slow one opens a second WebSocket. */
  get connects(): number {
    return this.types.filter((type) => type === 'connecting').length;
  }

  async told(type: RunEvent['type']): Promise<void> {
    await expect.poll(() => this.types).toContain(type);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.browser.release();
    // Released once, and no message of the client reached the browser afterwards.
    await this.bench.settle();
    await this.bench[Symbol.asyncDispose]();
  }
}

async function hold(driver: Driver, options = {}, session: Record<string, unknown> = {}): Promise<Held> {
  const bench = await FaultBench.start(used.local);
  bench.service.script('acquire', async (response) => {
    const lent = await bench.lend();

    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ ...lent, ...session }));
  });
  const events: RunEvent[] = [];
  const onEvent = (event: RunEvent) => void events.push(event);
  const browser = await driver.lease(bench.pool, { reconnect: 'eager' as const, ...options, onEvent });
  return new Held(bench, browser, events);
}
