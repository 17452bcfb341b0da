import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import { Heap } from './heap.js';
import type { Random } from './random.js';

interface Entry {
  at: number;
  /** Decides between entries of one time. */
  tie: number;
  run: (() => void) | undefined;
  /** Set by the code under test, which owes a `clearTimeout`. */
  isClients: boolean;
}

// The library loads it when it is first called for: in time that this clock would not see.
await import('p-retry');

/** The timers that Node gives to the code under test; the world's own use `VirtualClock.after`. */
const real = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setImmediate: globalThis.setImmediate,
  random: Math.random,
  sleep: timers.setTimeout,
  now: performance.now.bind(performance),
};

/**
 * Time that stands still until all that can happen now has happened, and then jumps to what comes next. While it is
 * installed, timers, the monotonic clock and random numbers of the whole process come from here.
 */
export class VirtualClock {
  now = 0;
  readonly #random: Random;
  readonly #heap = new Heap<Entry>((a, b) => a.at - b.at || a.tie - b.tie);
  #clientTimers = 0;
  #count = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Timers of the code under test that were neither cleared nor have fired. */
  get clientTimers(): number {
    return this.#clientTimers;
  }

  /** Something that happens in the world, of its own accord. The returned function calls it off. */
  after(milliseconds: number, run: () => void): () => void {
    const entry = { at: this.now + milliseconds, tie: this.#random.next(), run, isClients: false };
    this.#heap.push(entry);
    return () => {
      (entry as Entry).run = undefined;
    };
  }

  /** Resolves so many ms later, as the world's own doing. */
  sleep(milliseconds: number): Promise<void> {
    return new Promise((resolve) => this.after(milliseconds, resolve));
  }

  /** Runs until nothing is left to happen. */
  async run(): Promise<void> {
    for (;;) {
      await settleMicrotasks();
      const entry = this.#heap.pop();
      if (!entry) return;
      if (!entry.run) continue;
      this.now = Math.max(this.now, entry.at);
      const { run } = entry;
      this.#forget(entry);
      run();
    }
  }

  install(): void {
    Object.assign(globalThis, { setTimeout: this.#setTimeout, clearTimeout: this.#clearTimeout });
    Math.random = this.#random.next;
    Object.defineProperty(performance, 'now', { value: () => this.now, configurable: true });
    this.#setSleep(this.#sleep as typeof timers.setTimeout);
  }

  uninstall(): void {
    Object.assign(globalThis, { setTimeout: real.setTimeout, clearTimeout: real.clearTimeout });
    Math.random = real.random;
    Reflect.deleteProperty(performance, 'now');
    this.#setSleep(real.sleep);
  }

  #setSleep(sleep: typeof timers.setTimeout): void {
    timers.setTimeout = sleep;
    syncBuiltinESMExports();
  }

  readonly #setTimeout = (run: (...parameters: unknown[]) => void, delay = 0, ...parameters: unknown[]) => {
    this.#clientTimers++;
    // In order of their making: so does Node, for timers of one length.
    const entry: Entry = {
      at: this.now + Math.max(1, delay),
      tie: 0.5 + ++this.#count * 1e-9,
      run: () => run(...parameters),
      isClients: true,
    };
    this.#heap.push(entry);
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

  #forget(entry: Entry): void {
    if (entry.run && entry.isClients) this.#clientTimers--;
    entry.run = undefined;
  }
}

class VirtualTimer {
  readonly entry: Entry;

  constructor(entry: Entry) {
    this.entry = entry;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

/** All that promises and ticks still have to do at this time. */
export function settleMicrotasks(): Promise<void> {
  return new Promise((resolve) => real.setImmediate(resolve));
}

/** The clock of the machine, whatever is installed. */
export const realNow = real.now;
