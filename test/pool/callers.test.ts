import { beforeEach, describe, expect, it, vi } from 'vitest';
import { CircuitBreaker } from '../../src/pool/circuit-breaker.js';
import { Pacer, type Turn } from '../../src/pool/pacer.js';
import { raceAbort } from '../../src/shared/abort.js';
import { useFakeClock } from '../support/fake-clock.js';
import { settle } from '../support/played-browser.js';
import { PlayedLease } from '../support/played-lease.js';

describe('the order and pauses of callers', () => {
  const RETRY = { factor: 2, minTimeout: 250, maxTimeout: 10_000, randomize: false };

  /** Callers of a service with some places. */
  class Service {
    places = 0;
    readonly pacer = new Pacer();
    /** The caller of each request, in order. */
    readonly sent: string[] = [];
    readonly served: string[] = [];
    readonly #aborts = new Map<string, AbortController>();

    call(...names: string[]): void {
      for (const name of names) {
        const abort = new AbortController();
        this.#aborts.set(name, abort);
        void this.#run(name, this.pacer.turn(), abort.signal);
      }
    }

    abort(name: string): void {
      this.#aborts.get(name)!.abort();
    }

    /** Frees a place, as the end of a lease of this process does. */
    release(): void {
      this.places++;
      this.pacer.noteRelease();
    }

    async #run(name: string, turn: Turn, signal: AbortSignal): Promise<void> {
      try {
        for (;;) {
          await turn.begin(RETRY, signal);
          this.sent.push(name);
          if (this.places > 0) break;
          turn.refused();
        }
        this.places--;
        turn.served();
        this.served.push(name);
      } catch {
        turn.end();
      }
    }
  }

  async function pass(milliseconds: number): Promise<void> {
    await settle();
    for (let passed = 0; passed < milliseconds; passed += 50) {
      vi.advanceTimersByTime(50);
      await settle();
    }
  }

  let service: Service;
  beforeEach(() => {
    useFakeClock();
    service = new Service();
  });

  it('lets all callers of a service with room send at once', async () => {
    service.places = 5;
    service.call('a', 'b', 'c', 'd', 'e');
    await pass(0);
    expect(service.served).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  it('lets one caller probe a full service, with a backoff of at most two seconds', async () => {
    service.call('a', 'b', 'c');
    await pass(10_000);
    expect(service.sent.slice(0, 3)).toEqual(['a', 'b', 'c']);
    const probes = service.sent.slice(3);
    expect(new Set(probes)).toEqual(new Set(['a']));
    expect(probes.length).toBeGreaterThanOrEqual(5);
    expect(probes.length).toBeLessThanOrEqual(12);
  });

  it('serves callers in their order, each as soon as this process releases a browser', async () => {
    service.call('a', 'b', 'c', 'd');
    await pass(5000);
    for (const name of ['a', 'b', 'c', 'd']) {
      const before = service.sent.length;
      service.release();
      await pass(0);
      expect(service.served.at(-1)).toBe(name);
      await pass(1);
      expect(service.sent.length - before).toBeLessThanOrEqual(2);
      await pass(5000);
    }
  });

  it('finds a browser that another process released, within the longest pause', async () => {
    service.call('a', 'b');
    await pass(60_000);
    service.places = 1;
    await pass(2100);
    expect(service.served).toEqual(['a']);
  });

  it('serves all callers soon when the service has room again', async () => {
    service.call(...'abcdefgh'.split(''));
    await pass(1000);
    service.places = 8;
    await pass(2000);
    expect(service.served).toEqual('abcdefgh'.split(''));
  });

  it('passes the turn on when its caller gives up', async () => {
    service.call('a', 'b', 'c');
    await pass(1000);
    service.abort('a');
    await pass(10_000);
    service.abort('c');
    expect(service.sent.at(-1)).toBe('b');
    service.places = 1;
    await pass(2100);
    expect(service.served).toEqual(['b']);
    // Nobody waits: the next caller sends at once.
    service.places = 1;
    service.call('d');
    await pass(0);
    expect(service.served).toEqual(['b', 'd']);
  });

  it('waits as long as the service asks, unless a browser is released here', async () => {
    const turn = service.pacer.turn();
    const begin = async (done: string[]) => {
      await turn.begin(RETRY, new AbortController().signal);
      done.push('sent');
    };
    const done: string[] = [];
    turn.refused(30_000);
    void begin(done);
    await pass(29_000);
    expect(done).toEqual([]);
    await pass(1000);
    expect(done).toEqual(['sent']);
    turn.refused(30_000);
    void begin(done);
    await pass(1000);
    service.pacer.noteRelease();
    await pass(0);
    expect(done).toEqual(['sent', 'sent']);
  });

  it('repeats a refused request at once if a browser was released while it was on its way', async () => {
    const turn = service.pacer.turn();
    const { signal } = new AbortController();
    turn.refused();
    const begun = turn.begin(RETRY, signal);
    await pass(1000);
    await begun;
    service.pacer.noteRelease();
    turn.refused();
    let isSent = false;
    void turn.begin(RETRY, signal).then(() => (isSent = true));
    await pass(0);
    expect(isSent).toBe(true);
  });
});

describe('callers during an outage', () => {
  type Outcome = 'works' | 'down' | 'down for 5 s';

  /** Callers at one circuit breaker, whose requests the test answers. */
  class Callers {
    /** Names of the callers whose request was sent, in order. */
    readonly sent: string[] = [];
    /** What each caller received: an outcome, or the reason of its abort. */
    readonly outcomes: Record<string, unknown> = {};
    readonly #breaker = new CircuitBreaker();
    readonly #answers = new Map<string, (outcome: Outcome) => void>();

    /** A call, which makes a pause of this many ms before its request during an outage. */
    call(name: string, pause = 1): AbortController {
      const caller = new AbortController();
      const { signal } = caller;
      const retry = { factor: 1, minTimeout: pause, maxTimeout: pause, randomize: false };
      const send = async () => {
        const permit = await this.#breaker.enter(retry, signal);
        this.sent.push(name);
        const answer = new Promise<Outcome>((resolve) => this.#answers.set(name, resolve));
        const outcome = await raceAbort(answer, signal).catch((error: unknown) => {
          permit.release();
          throw error;
        });
        if (outcome === 'works') permit.succeeded();
        else permit.failed(outcome === 'down' ? undefined : 5000);
        return outcome;
      };
      send().then(
        (outcome) => (this.outcomes[name] = outcome),
        (error: unknown) => (this.outcomes[name] = error),
      );
      return caller;
    }

    answer(name: string, outcome: Outcome): void {
      this.#answers.get(name)!(outcome);
    }

    /** Expects that these callers, and no others, have sent a request after this many ms. */
    async expectSent(names: string[], after = 1): Promise<void> {
      await settle();
      vi.advanceTimersByTime(after);
      await settle();
      expect(this.sent).toEqual(names);
    }

    /** Begins an outage: the request of one caller fails. */
    async beginOutage(outcome: Outcome = 'down'): Promise<void> {
      this.call('first');
      await settle();
      this.answer('first', outcome);
      await settle();
      this.sent.length = 0;
    }
  }

  let callers: Callers;
  beforeEach(() => {
    useFakeClock();
    callers = new Callers();
  });

  it('sends each request at once while the service works', async () => {
    for (const name of ['a', 'b']) callers.call(name);
    await callers.expectSent(['a', 'b'], 0);
    callers.answer('a', 'works');
    callers.call('c');
    await callers.expectSent(['a', 'b', 'c'], 0);
  });

  describe('during an outage', () => {
    it('one caller at a time sends a request, in order of arrival', async () => {
      await callers.beginOutage();
      for (const name of ['a', 'b', 'c']) callers.call(name);
      await callers.expectSent(['a']);
      callers.answer('a', 'down');
      await callers.expectSent(['a', 'b']);
      callers.answer('b', 'down');
      await callers.expectSent(['a', 'b', 'c']);
      expect(callers.outcomes).toMatchObject({ a: 'down', b: 'down' });
    });

    it.each<[string, Outcome, number]>([
      ['the backoff', 'down', 60_000],
      ['the time that the service asked for', 'down for 5 s', 5000],
    ])('a request follows the last failure after %s', async (_what, outcome, pause) => {
      await callers.beginOutage(outcome);
      callers.call('a', 60_000);
      await callers.expectSent([], pause - 1);
      await callers.expectSent(['a'], 1);
    });

    it.each([
      ['a success of the caller whose turn it is', () => callers.answer('a', 'works')],
      ['a success that was requested before the outage', () => callers.answer('early', 'works')],
      [
        'a request without an error for 12 s, which waits for a browser',
        () => vi.advanceTimersByTime(12_000),
      ],
    ])('all others follow %s', async (_what, end) => {
      callers.call('early');
      await callers.beginOutage();
      for (const name of ['a', 'b', 'c']) callers.call(name);
      await callers.expectSent(['a']);
      end();
      await callers.expectSent(['a', 'b', 'c'], 0);
    });
  });

  it('a failure of a request that was sent before the outage does not prolong it', async () => {
    callers.call('early');
    await callers.beginOutage();
    vi.advanceTimersByTime(10_000);
    callers.answer('early', 'down');
    await settle();
    callers.call('a', 60_000);
    await callers.expectSent([], 49_999);
    await callers.expectSent(['a'], 1);
  });

  it('a request that fails after it has waited for a browser begins no outage', async () => {
    await callers.beginOutage();
    callers.call('a');
    await callers.expectSent(['a']);
    vi.advanceTimersByTime(12_000);
    callers.answer('a', 'down');
    await settle();
    callers.call('b');
    await callers.expectSent(['a', 'b'], 0);
  });

  describe('a caller that aborts during an outage', () => {
    it('in its pause passes the turn on, also to a caller that arrives later', async () => {
      await callers.beginOutage();
      const a = callers.call('a', 60_000);
      callers.call('b');
      a.abort('left');
      await callers.expectSent(['b']);
      callers.answer('b', 'down');
      const c = callers.call('c', 60_000);
      await callers.expectSent(['b']);
      c.abort('left');
      callers.call('d');
      await callers.expectSent(['b', 'd']);
      expect(callers.outcomes).toMatchObject({ a: 'left', c: 'left' });
    });

    it('while it waits leaves the order of the others', async () => {
      await callers.beginOutage();
      callers.call('a');
      const b = callers.call('b');
      callers.call('c');
      await callers.expectSent(['a']);
      b.abort('left');
      callers.answer('a', 'down');
      await callers.expectSent(['a', 'c']);
      expect(callers.outcomes).toMatchObject({ b: 'left' });
    });

    it.each(Array.from({ length: 20 }, (_, turns) => turns))(
      'when its turn comes passes the turn on: %i turns of the microtask queue after the failure before it',
      async (turns) => {
        await callers.beginOutage();
        callers.call('a');
        const b = callers.call('b');
        callers.call('c');
        await callers.expectSent(['a']);
        callers.answer('a', 'down');
        for (let turn = 0; turn < turns; turn++) await Promise.resolve();
        b.abort('left');
        await callers.expectSent(['a', 'c']);
        expect(callers.outcomes).toMatchObject({ b: 'left' });
      },
    );

    it('in its request says nothing about the service', async () => {
      await callers.beginOutage();
      const a = callers.call('a');
      for (const name of ['b', 'c']) callers.call(name);
      await callers.expectSent(['a']);
      a.abort('left');
      await callers.expectSent(['a', 'b']);
    });
  });
});

it.each([
  ['succeeds', 1, 204, 'reused'],
  ['fails', 0, 403, 'failed'],
] as const)(
  'a release that %s ends %i pauses before a full service is asked',
  async (_how, times, status, released) => {
    await using played = await PlayedLease.start();
    played.service.script('release', { status });
    const noteRelease = vi.spyOn(Pacer.prototype, 'noteRelease');
    const { run } = await played.run();
    expect(run!.released).toBe(released);
    expect(noteRelease).toHaveBeenCalledTimes(times);
  },
);
