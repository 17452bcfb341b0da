import { beforeEach, expect, it, vi } from 'vitest';
import { Pacer, type Turn } from '../../src/pool/pacer.js';
import { useFakeClock } from '../support/fake-clock.js';
import { settle } from '../support/played-browser.js';

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
