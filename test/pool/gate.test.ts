import { beforeEach, describe, expect, it, vi } from 'vitest';
import {
  Gate,
  type Answer,
  type Caller,
  type Permission,
  type Served,
  type Place,
} from '../../src/pool/gate.js';
import { LinkedAbort } from '../../src/shared/abort.js';
import { useFakeClock } from '../support/fake-clock.js';
import { settle } from '../support/played-browser.js';

interface Reply extends Answer {
  /** The caller whose request leased the browser. */
  readonly sentBy?: string;
}

const RETRY = { factor: 2, minTimeout: 250, maxTimeout: 10_000, randomize: false };
const FULL: Reply = { isGranted: false, says: 'full' };
const DOWN: Reply = { isGranted: false, says: 'outage', error: new Error('down') };
const NONE: Reply = { isGranted: false, says: 'works' };

/** Callers at one gate. A service with places answers at once; without `places`, the test answers each request. */
class Callers {
  places: number | undefined;
  readonly gate: Gate<Reply>;
  /** The caller of each request, in order. */
  readonly sent: string[] = [];
  /** For how long each of these requests may wait. */
  readonly waits: number[] = [];
  /** The callers with a browser, in order, each with the caller whose request leased it. */
  readonly served: string[] = [];
  readonly released: string[] = [];
  readonly failed: string[] = [];
  readonly #source = {};
  readonly #answers = new Map<string, (reply: Reply) => void>();
  readonly #aborts = new Map<string, LinkedAbort>();
  readonly #held = new Map<string, Served<Reply>>();
  #number = 0;

  constructor(refusesAtOnce = false) {
    this.gate = new Gate<Reply>(refusesAtOnce);
  }

  call(
    names: string,
    {
      kind = '',
      limit = Number.POSITIVE_INFINITY,
      retry = RETRY,
      source = this.#source,
      isFirst = false,
      wait = Number.POSITIVE_INFINITY,
    } = {},
  ): void {
    for (const name of names) {
      const abort = new LinkedAbort();
      this.#aborts.set(name, abort);
      const place = this.gate.enter({
        number: isFirst ? 0 : ++this.#number,
        source,
        kind,
        limit,
        retry,
        wait,
        track: () => {},
        release: (reply) => void this.released.push(reply.sentBy!),
        send: (permission) => this.#send(name, permission),
      } satisfies Caller<Reply>);
      void this.#run(name, place, abort);
    }
  }

  /** Answers the open request of a caller. */
  async answer(name: string, reply: Reply | 'granted'): Promise<void> {
    const granted = { isGranted: true, says: 'works', sentBy: name } as const;
    this.#answers.get(name)!(reply === 'granted' ? granted : reply);
    this.#answers.delete(name);
    await settle();
  }

  abort(name: string): void {
    this.#aborts.get(name)!.abort(new Error('left'));
  }

  /** Ends the lease of a caller. */
  async release(name: string): Promise<void> {
    if (this.places !== undefined) this.places++;
    this.#held.get(name)!.free(true);
    await settle();
  }

  async #run(name: string, place: Place<Reply>, abort: LinkedAbort): Promise<void> {
    try {
      for (;;) {
        const served = await this.gate.ask(place, abort);
        if (!served.reply.isGranted) continue;
        this.#held.set(name, served);
        const { sentBy = name } = served.reply;
        this.served.push(sentBy === name ? name : `${name}<${sentBy}`);
        break;
      }
    } catch {
      this.failed.push(name);
    } finally {
      this.gate.leave(place);
    }
  }

  async #send(name: string, { signal, wait, onWrite }: Permission): Promise<Reply> {
    signal.throwIfAborted();
    this.sent.push(name);
    this.waits.push(wait);
    onWrite();
    if (this.places === undefined) return new Promise((resolve) => this.#answers.set(name, resolve));
    if (this.places === 0) return FULL;
    this.places--;
    return { isGranted: true, says: 'works', sentBy: name };
  }
}

async function pass(milliseconds: number): Promise<void> {
  await settle();
  for (let passed = 0; passed < milliseconds; passed += 50) {
    vi.advanceTimersByTime(50);
    await settle();
  }
}

let at: Callers;
beforeEach(() => useFakeClock());

describe('the order', () => {
  beforeEach(() => void (at = new Callers()));

  it('a browser goes to the caller that has waited longest for the like, and the requests change their owners', async () => {
    at.call('abc');
    await settle();
    await at.answer('c', 'granted');
    expect(at.served).toEqual(['a<c']);
    // `c` waits for the request of `a` now.
    await at.answer('a', 'granted');
    expect(at.served).toEqual(['a<c', 'b<a']);
    await at.answer('b', 'granted');
    expect(at.served).toEqual(['a<c', 'b<a', 'c<b']);
    expect(at.sent).toEqual(['a', 'b', 'c']);
  });

  it('a browser of another kind, or of another source, goes to its own caller', async () => {
    at.call('a');
    at.call('b', { kind: 'with a name' });
    at.call('c', { source: {} });
    await settle();
    for (const name of ['c', 'b']) await at.answer(name, 'granted');
    expect(at.served).toEqual(['c', 'b']);
  });

  it('the browser of a request whose caller has left goes to the next one, otherwise it is released', async () => {
    at.call('ab');
    await settle();
    at.abort('a');
    await at.answer('a', 'granted');
    expect(at.served).toEqual(['b<a']);
    await at.answer('b', 'granted');
    expect([at.served, at.released]).toEqual([['b<a'], ['b']]);
  });

  it('32 requests at most are open, and each answer lets the next caller send', async () => {
    const names = Array.from({ length: 34 }, (_, index) => String.fromCharCode(97 + index)).join('');
    at.call(names);
    await settle();
    expect(at.sent).toHaveLength(32);
    await at.answer('a', 'granted');
    expect(at.sent).toHaveLength(33);
  });

  it('a caller whose browser went to another one, which had no open request, sends a further request', async () => {
    const names = Array.from({ length: 32 }, (_, index) => String.fromCharCode(97 + index)).join('');
    at.call(names);
    await settle();
    at.call('0', { isFirst: true });
    await settle();
    await at.answer('b', 'granted');
    expect(at.served).toEqual(['0<b']);
    expect(at.sent.slice(32)).toEqual(['b']);
    await at.answer('b', 'granted');
    expect(at.served).toEqual(['0<b', 'a<b']);
  });

  it('an answer without a browser goes to the caller that sent the request, which keeps its place', async () => {
    at.call('ab');
    await settle();
    await at.answer('a', NONE);
    expect(at.sent).toEqual(['a', 'b', 'a']);
    await at.answer('b', 'granted');
    expect(at.served).toEqual(['a<b']);
  });

  it('the limit counts leases and open requests', async () => {
    at.call('abc', { limit: 2 });
    await settle();
    expect(at.sent).toEqual(['a', 'b']);
    await at.answer('a', 'granted');
    expect(at.sent).toEqual(['a', 'b']);
    await at.release('a');
    expect(at.sent).toEqual(['a', 'b', 'c']);
  });
});

describe("callers that can't use each other's browsers", () => {
  /** Each is of a kind of its own. */
  const call = (names: string, wait = 25_000) => {
    for (const name of names) at.call(name, { kind: name, wait });
  };
  beforeEach(() => void (at = new Callers()));

  it('have requests that end together, and are sent again in the order of the calls', async () => {
    call('ab');
    await pass(4500);
    call('c');
    await pass(10_000);
    call('d', 5000);
    await pass(2500);
    call('e');
    await settle();
    expect(at.sent.join('')).toBe('abcde');
    expect(at.waits).toEqual([25_000, 25_000, 19_000, 5000, 1000]);
    await pass(7600);
    for (const name of 'edcba') await at.answer(name, NONE);
    await pass(0);
    expect(at.sent.slice(5).join('')).toBe('abcde');
  });

  it('send no request in the last two seconds before an earlier one ends, unless that end is late', async () => {
    call('a');
    await pass(23_500);
    call('b');
    await pass(2400);
    expect(at.sent).toEqual(['a']);
    await pass(100);
    expect(at.sent).toEqual(['a', 'b']);
    expect(at.waits).toEqual([25_000, 25_000]);
  });

  it('do not shorten the time of a request before theirs, or of a caller of the like', async () => {
    call('a', 5000);
    await pass(1000);
    at.call('b', { kind: 'a', wait: 25_000 });
    at.call('0', { kind: '0', wait: 25_000, isFirst: true });
    await settle();
    expect(at.waits).toEqual([5000, 25_000, 25_000]);
  });
});

describe('a service that refuses at once', () => {
  beforeEach(() => {
    at = new Callers(true);
    at.places = 0;
  });

  it('is asked twice as often whenever it does not refuse for a moment', async () => {
    at = new Callers(true);
    at.call('abcdefghij');
    const counts: number[] = [];
    for (let moment = 0; moment < 4; moment++) {
      await pass(moment === 0 ? 0 : 250);
      counts.push(at.sent.length);
    }
    expect(counts).toEqual([1, 2, 4, 8]);
  });

  it('with free browsers serves all callers at once', async () => {
    at.places = 20;
    at.call('abcdefghijkl');
    await pass(0);
    expect(at.served).toHaveLength(12);
  });

  it('that is full is asked by one request at a time, for the first caller, with pauses of at most two seconds', async () => {
    at.call('abcdefghijkl');
    await pass(10_000);
    const probes = at.sent;
    expect(new Set(probes)).toEqual(new Set(['a']));
    expect(probes.length).toBeGreaterThanOrEqual(5);
    expect(probes.length).toBeLessThanOrEqual(15);
  });

  it('gets one request for each browser that this process releases', async () => {
    at.places = 2;
    at.call('abcdefgh');
    await pass(60_000);
    expect(at.served).toEqual(['a', 'b']);
    for (const [ended, next] of ['ac', 'bd', 'ce']) {
      const before = at.sent.length;
      await at.release(ended!);
      expect(at.served.at(-1)).toBe(next);
      expect(at.sent.length - before).toBe(1);
    }
  });

  it('is asked at once for each of several browsers that are released together', async () => {
    at.places = 3;
    at.call('abcdefgh');
    await pass(60_000);
    const before = at.sent.length;
    for (const name of 'abc') void at.release(name);
    await pass(0);
    expect(at.served).toEqual('abcdef'.split(''));
    expect(at.sent.length - before).toBe(3);
  });

  it('has its browser of another process found within the longest pause, and all of them soon', async () => {
    at.call('abcdefgh');
    await pass(60_000);
    at.places = 1;
    await pass(2100);
    expect(at.served).toEqual(['a']);
    at.places = 8;
    await pass(3100);
    expect(at.served).toEqual('abcdefgh'.split(''));
  });

  it('is asked again after the time that it asked for, unless a browser is released here', async () => {
    at = new Callers(true);
    at.call('ab');
    await settle();
    await at.answer('a', 'granted');
    await at.answer('b', { ...FULL, retryAfter: 30_000 });
    await pass(29_900);
    expect(at.sent).toEqual(['a', 'b']);
    await pass(100);
    expect(at.sent).toEqual(['a', 'b', 'b']);
    await at.answer('b', { ...FULL, retryAfter: 30_000 });
    await at.release('a');
    expect(at.sent).toEqual(['a', 'b', 'b', 'b']);
  });

  it('is asked again at once if a browser was released while the refused request was on its way', async () => {
    at = new Callers(true);
    at.call('ab');
    await settle();
    await at.answer('a', 'granted');
    await at.release('a');
    await at.answer('b', FULL);
    expect(at.sent).toEqual(['a', 'b', 'b']);
  });

  it('is asked for the next caller when the first one leaves', async () => {
    at.call('abc');
    await pass(1000);
    at.abort('a');
    await pass(5000);
    expect(at.sent.at(-1)).toBe('b');
  });
});

describe('a service with an outage', () => {
  beforeEach(async () => {
    at = new Callers();
    at.call('0');
    await settle();
    await at.answer('0', DOWN);
    at.abort('0');
    at.sent.length = 0;
  });

  it('is asked by one caller after the other, each after a pause that grows', async () => {
    at.call('abc');
    await pass(200);
    expect(at.sent).toEqual([]);
    await pass(50);
    expect(at.sent).toEqual(['a']);
    await at.answer('a', DOWN);
    await pass(450);
    expect(at.sent).toEqual(['a']);
    await pass(50);
    expect(at.sent).toEqual(['a', 'b']);
    await at.answer('b', DOWN);
    await pass(1000);
    expect(at.sent).toEqual(['a', 'b', 'c']);
    expect(at.gate.closedBy).toBe(DOWN.error);
  });

  it('is asked after the time that it asked for', async () => {
    at.call('a');
    await pass(250);
    await at.answer('a', { ...DOWN, retryAfter: 5000 });
    await pass(4950);
    expect(at.sent).toEqual(['a']);
    await pass(50);
    expect(at.sent).toEqual(['a', 'a']);
  });

  it.each([
    ['an answer', () => at.answer('a', NONE)],
    ['12 s without an error, in which the request waits for a browser', () => pass(12_000)],
  ])('is asked by all callers after %s', async (_what, end) => {
    at.call('abc');
    await pass(250);
    expect(at.sent).toEqual(['a']);
    await end();
    expect(new Set(at.sent)).toEqual(new Set(['a', 'b', 'c']));
    expect(at.gate.closedBy).toBeUndefined();
  });

  it('a failure of a request that was sent before it does not prolong it', async () => {
    at = new Callers();
    at.call('ab');
    await settle();
    await at.answer('a', DOWN);
    await pass(200);
    await at.answer('b', DOWN);
    await pass(50);
    expect(at.sent).toHaveLength(3);
  });

  it('passes its place on if the caller leaves', async () => {
    at.call('ab');
    at.abort('a');
    await pass(250);
    expect(at.sent).toEqual(['b']);
    at.abort('b');
    at.call('c');
    await pass(0);
    expect(at.sent).toEqual(['b', 'c']);
  });
});
