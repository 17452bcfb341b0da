import { AsyncResource } from 'node:async_hooks';
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import { clock } from '../../src/shared/clock.js';
import type { Random } from '../support/random.js';
import { loadDrivers } from '../../src/calls/load-drivers.js';
import { loadLease } from '../../src/calls/lease-browser.js';
import { readLeaseOptions, runChecks } from '../../src/calls/options.js';
import { createFeatures } from '../../src/features/create-features.js';
import { loadJob } from '../../src/jobs/map-pooled-browsers.js';

interface Entry {
  at: number;
  /** Orders entries of the same time. */
  tie: number;
  run: (() => void) | undefined;
  /** Set by the code under test, which must clear it. */
  isClients: boolean;
}

// The library imports these at their first use, which would take time that this clock does not see.
const settings = readLeaseOptions(runChecks, {}, { caller: 'test' });
await Promise.all([loadLease(), createFeatures(settings), loadDrivers(), loadJob()]);

/** Node's own functions, which `uninstall` restores. */
const real = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setImmediate: globalThis.setImmediate,
  random: Math.random,
  sleep: timers.setTimeout,
  now: performance.now.bind(performance),
};

type Clock = typeof clock;

/**
 * A clock that jumps to the next timer when nothing is left to do at the current time. While it is installed, it
 * replaces timers, the monotonic clock and random numbers of the library and of the whole process.
 */
export class VirtualClock {
  now = 0;
  readonly #random: Random;
  /** The next entry is the last. */
  readonly #entries: Entry[] = [];
  readonly #library: Clock;
  readonly #original: Clock;
  #clientTimers = 0;
  #count = 0;
  #ids = 0;

  /** @param library The clock of the library under test. */
  constructor(random: Random, library: Clock = clock) {
    this.#random = random;
    this.#library = library;
    this.#original = { ...library };
  }

  /** Timers of the code under test that were neither cleared nor fired. */
  get clientTimers(): number {
    return this.#clientTimers;
  }

  /** Schedules an event of the simulated world. The returned function cancels it. */
  after(milliseconds: number, run: () => void): () => void {
    const entry: Entry = { at: this.now + milliseconds, tie: this.#random.next(), run, isClients: false };
    this.#add(entry);
    return () => void (entry.run = undefined);
  }

  /** Resolves after this many milliseconds, as an event of the simulated world. */
  sleep(milliseconds: number): Promise<void> {
    return new Promise((resolve) => this.after(milliseconds, resolve));
  }

  /** Runs until no event is left. */
  async run(): Promise<void> {
    for (;;) {
      await settle();
      const entry = this.#entries.pop();
      if (!entry) return;
      if (!entry.run) continue;
      this.now = Math.max(this.now, entry.at);
      const { run } = entry;
      this.#forget(entry);
      run();
    }
  }

  install(): void {
    const own = { setTimeout: this.#setTimeout, clearTimeout: this.#clearTimeout };
    Object.assign(globalThis, own);
    Object.assign(this.#library, own, { now: () => this.now });
    Math.random = this.#random.next;
    Object.defineProperty(crypto, 'randomUUID', { value: () => `id-${++this.#ids}`, configurable: true });
    Object.defineProperty(performance, 'now', { value: () => this.now, configurable: true });
    this.#setSleep(this.#sleep as typeof timers.setTimeout);
  }

  uninstall(): void {
    Object.assign(globalThis, { setTimeout: real.setTimeout, clearTimeout: real.clearTimeout });
    Object.assign(this.#library, this.#original);
    Math.random = real.random;
    Reflect.deleteProperty(crypto, 'randomUUID');
    Reflect.deleteProperty(performance, 'now');
    this.#setSleep(real.sleep);
  }

  #setSleep(sleep: typeof timers.setTimeout): void {
    timers.setTimeout = sleep;
    syncBuiltinESMExports();
  }

  readonly #setTimeout = (run: (...parameters: unknown[]) => void, delay = 0, ...parameters: unknown[]) => {
    this.#clientTimers++;
    // Timers of one length fire in the order in which they were set, as in Node.
    const entry: Entry = {
      at: this.now + Math.max(1, delay),
      tie: 0.5 + ++this.#count * 1e-9,
      run: AsyncResource.bind(() => run(...parameters)),
      isClients: true,
    };
    this.#add(entry);
    return new VirtualTimer(entry);
  };

  readonly #clearTimeout = (timer: unknown): void => {
    if (timer instanceof VirtualTimer) this.#forget(timer.entry);
    else real.clearTimeout(timer as NodeJS.Timeout);
  };

  readonly #sleep = (delay: number, value: unknown, { signal }: { signal?: AbortSignal } = {}) =>
    new Promise((resolve, reject) => {
      const stop = () => {
        this.#clearTimeout(timer);
        reject(new DOMException('The operation was aborted', 'AbortError'));
      };
      const timer = this.#setTimeout(() => {
        signal?.removeEventListener('abort', stop);
        resolve(value);
      }, delay);
      if (signal?.aborted) stop();
      else signal?.addEventListener('abort', stop, { once: true });
    });

  /** Inserts by binary search: most worlds have a few dozen entries. */
  #add(entry: Entry): void {
    let [low, high] = [0, this.#entries.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.#entries[middle]!;
      if (other.at > entry.at || (other.at === entry.at && other.tie > entry.tie)) low = middle + 1;
      else high = middle;
    }
    this.#entries.splice(low, 0, entry);
  }

  #forget(entry: Entry): void {
    if (entry.run && entry.isClients) this.#clientTimers--;
    entry.run = undefined;
  }
}

class VirtualTimer {
  readonly entry: Entry;
  readonly ref = (): this => this;
  readonly unref = (): this => this;

  constructor(entry: Entry) {
    this.entry = entry;
  }
}

/** Resolves when nothing is left to do at the current time: no microtask, no tick and no immediate. */
async function settle(): Promise<void> {
  do await new Promise((resolve) => real.setImmediate(resolve));
  while (process.getActiveResourcesInfo().includes('Immediate'));
}

/** The real monotonic clock, also while a virtual clock is installed. */
export const realNow = real.now;
