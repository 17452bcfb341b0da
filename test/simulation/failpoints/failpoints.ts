import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * - `throws`: the work is not begun;
 * - `throws after`: it is done, and its outcome is lost;
 * - `hangs`: it is begun, and nothing is heard of it again;
 * - `is late`: it succeeds, two minutes later;
 * - `is aborted`: the caller's signal aborts as the work begins;
 * - `waits`: nothing fails, but other things get their turn first.
 */
export const MODES = ['throws', 'throws after', 'hangs', 'is late', 'is aborted', 'waits'] as const;
export type Mode = (typeof MODES)[number];

interface Armed {
  id: number;
  mode: Mode;
  /** Which pass through this await, from 1. */
  pass: number;
  sleep: (milliseconds: number) => Promise<void>;
  abort: () => void;
}

/** What the built-in failpoints call: counts the passes, and fails where it is armed. */
export class Failpoints {
  /** Passes through each await. */
  readonly passes = new Map<number, number>();
  /** Awaits inside of which other awaits were passed: they fail when those do. */
  readonly outer = new Set<number>();
  armed: Armed | undefined;
  /** True once the armed one was reached. */
  struck = false;
  readonly #around = new AsyncLocalStorage<{ id: number; isPending: boolean }>();

  install(): void {
    Object.assign(globalThis, { failpoint: this.#await, failpointInLoop: this.#loop });
  }

  uninstall(): void {
    for (const name of ['failpoint', 'failpointInLoop']) Reflect.deleteProperty(globalThis, name);
  }

  /** Arms one, or none, and forgets what was counted. */
  reset(armed?: Armed): void {
    this.armed = armed;
    this.struck = false;
    this.passes.clear();
  }

  readonly #await = async (id: number, work: () => unknown): Promise<unknown> => {
    const mode = this.#pass(id);
    const around = { id, isPending: true };
    const begin = async () => this.#around.run(around, work);
    if (mode === 'throws') throw new Error('failpoint');
    if (mode === 'is aborted') this.armed!.abort();
    const begun = begin();
    // Heard of later, or never: that is the failpoint's doing.
    begun.catch(() => {});
    if (mode === 'hangs') await new Promise(() => {});
    if (mode === 'waits') await begun.finally(() => this.armed!.sleep(20));
    const value = await begun.finally(() => {
      around.isPending = false;
    });
    if (mode === 'is late') await this.armed!.sleep(120_000);
    if (mode === 'throws after') throw new Error('failpoint');
    return value;
  };

  readonly #loop = (id: number, items: () => AsyncIterable<unknown>): AsyncIterable<unknown> => {
    const iterator = items()[Symbol.asyncIterator]();
    return {
      [Symbol.asyncIterator]: () => ({ next: () => this.#await(id, () => iterator.next()) as never }),
    };
  };

  #pass(id: number): Mode | undefined {
    const outer = this.#around.getStore();
    if (outer?.isPending && outer.id !== id) this.outer.add(outer.id);
    const pass = (this.passes.get(id) ?? 0) + 1;
    this.passes.set(id, pass);
    if (this.armed?.id !== id || this.armed.pass !== pass) return undefined;
    this.struck = true;
    return this.armed.mode;
  }
}
