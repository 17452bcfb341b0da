import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import type { RunEvent } from '../../src/index.js';
import { leaseSession } from '../../src/lease/lease-browser.js';
import { reply, session, type FakeService } from '../support/fake-service.js';
import type { BrowserPool } from '../../src/service/browser-pool.js';
import { until } from '../support/played-browser.js';
import { it as serviceIt } from './support.js';

/** Callers of one pool, whose requests the test answers. A caller gives up after its first failure. */
class Callers implements AsyncDisposable {
  /** Names of the callers whose request was sent, in order. */
  readonly sent: unknown[] = [];
  /** What each caller received: the id of its session, a status, or the reason of its abort. */
  readonly outcomes: Record<string, unknown> = {};
  readonly #pool: BrowserPool;
  readonly #open = new Map<unknown, ServerResponse>();
  readonly #end = new AbortController();

  constructor(service: FakeService, pool: BrowserPool) {
    this.#pool = pool;
    service.script('acquire', (response, { body }) => {
      this.sent.push(body!['name']);
      this.#open.set(body!['name'], response);
    });
  }

  /** A call, which makes a pause of this many ms before each request during an outage. */
  call(name: string, pause = 1, onEvent: (event: RunEvent) => void = () => {}): AbortController {
    const caller = new AbortController();
    const signal = AbortSignal.any([caller.signal, this.#end.signal]);
    const retry = { retries: 0, factor: 1, minTimeout: pause, maxTimeout: pause, randomize: false };
    const leasing = leaseSession(this.#pool, {
      name,
      signal,
      retry,
      onEvent,
      release: 'leave',
      replays: 'off',
    });
    leasing.then(
      (lease) => {
        this.outcomes[name] = lease.sessionId;
        return lease.end({ status: 'ok' });
      },
      (error: { status?: unknown }) => (this.outcomes[name] = error.status ?? error),
    );
    return caller;
  }

  /** Calls one after the other, so that the calls arrive in this order. */
  calls(...names: string[]): AbortController[] {
    return names.map((name) => this.call(name));
  }

  answer(name: string, status: number): void {
    reply(this.#open.get(name)!, status === 200 ? { status, json: session() } : { status });
    this.#open.delete(name);
  }

  async expectSent(...names: string[]): Promise<void> {
    await expect.poll(() => this.sent, { interval: 5 }).toEqual(names);
    await sleep(20);
    expect(this.sent).toEqual(names);
  }

  /** Begins an outage: the request of one caller fails. */
  async beginOutage(): Promise<void> {
    this.call('first');
    await this.expectSent('first');
    this.answer('first', 503);
    await until(() => this.outcomes['first'] === 503);
    this.sent.length = 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    for (const response of this.#open.values()) reply(response, { status: 204 });
    await this.#pool.close();
  }
}

const it = serviceIt.extend<{ callers: Callers }>({
  callers: async ({ service, pool }, use) => {
    await using callers = new Callers(service, pool);
    await use(callers);
  },
});

it('sends each request at once while the service works, and after a refusal', async ({ callers }) => {
  callers.calls('a', 'b');
  await callers.expectSent('a', 'b');
  callers.answer('a', 400);
  await until(() => callers.outcomes['a'] === 400);
  callers.call('c');
  await callers.expectSent('a', 'b', 'c');
});

describe('during an outage', () => {
  it('one caller at a time sends a request, in order of arrival', async ({ callers }) => {
    await callers.beginOutage();
    callers.calls('a', 'b', 'c');
    await callers.expectSent('a');
    callers.answer('a', 503);
    await callers.expectSent('a', 'b');
    callers.answer('b', 503);
    await callers.expectSent('a', 'b', 'c');
    expect(callers.outcomes).toMatchObject({ a: 503, b: 503 });
  });

  it('a request follows the last failure after the backoff', async ({ callers }) => {
    await callers.beginOutage();
    callers.call('a', 60_000);
    await sleep(50);
    expect(callers.sent).toEqual([]);
  });

  it.for<[string, string, number]>([
    ['a success of the caller whose turn it is', 'a', 200],
    ['a success that was requested before the outage', 'early', 200],
    ['a refusal, which shows that the service works', 'a', 400],
  ])('all others follow %s', async ([, caller, status], { callers }) => {
    callers.call('early');
    await callers.expectSent('early');
    callers.sent.length = 0;
    await callers.beginOutage();
    callers.calls('a', 'b', 'c');
    await callers.expectSent('a');
    callers.answer(caller, status);
    await expect.poll(() => new Set(callers.sent), { interval: 5 }).toEqual(new Set(['a', 'b', 'c']));
    expect(callers.sent).toHaveLength(3);
  });
});

describe('a caller that aborts during an outage', () => {
  it('in its pause passes the turn on, also to a caller that arrives later', async ({ callers }) => {
    await callers.beginOutage();
    const a = callers.call('a', 60_000);
    callers.call('b');
    a.abort('left');
    await callers.expectSent('b');
    callers.answer('b', 503);
    const c = callers.call('c', 60_000);
    await sleep(20);
    c.abort('left');
    await until(() => callers.outcomes['c'] === 'left');
    callers.call('d');
    await callers.expectSent('b', 'd');
    expect(callers.outcomes).toMatchObject({ a: 'left' });
  });

  it('while it waits leaves the order of the others', async ({ callers }) => {
    await callers.beginOutage();
    const [, b] = callers.calls('a', 'b', 'c');
    await callers.expectSent('a');
    b!.abort('left');
    callers.answer('a', 503);
    await callers.expectSent('a', 'c');
    expect(callers.outcomes).toMatchObject({ b: 'left' });
  });

  it('when its turn has just come passes the turn on', async ({ callers }) => {
    await callers.beginOutage();
    for (let turns = 0; turns < 20; turns++) {
      const [a, b, c] = [`a${turns}`, `b${turns}`, `c${turns}`];
      // The event of the failure comes a few turns of the microtask queue before the turn of the next caller.
      callers.call(a, 1, async ({ type }) => {
        if (type !== 'outcome-unknown') return;
        for (let turn = 0; turn < turns; turn++) await Promise.resolve();
        leaving.abort('left');
      });
      const leaving = callers.call(b);
      callers.call(c);
      await until(() => callers.sent.includes(a));
      callers.answer(a, 500);
      await until(() => callers.sent.includes(c));
      expect(callers.outcomes[b]).toBe('left');
      callers.answer(c, 503);
      await until(() => callers.outcomes[c] === 503);
    }
  });

  it('in its request says nothing about the service', async ({ callers }) => {
    await callers.beginOutage();
    const [a] = callers.calls('a', 'b', 'c');
    await callers.expectSent('a');
    a!.abort('left');
    await callers.expectSent('a', 'b');
  });
});
