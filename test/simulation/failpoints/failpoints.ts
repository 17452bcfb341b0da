import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * - `throws`: the work does not start;
 * - `throws after`: the work is done, and its result is lost;
 * - `hangs`: the work starts, and never settles;
 * - `is late`: the work succeeds two minutes later;
 * - `is aborted`: the caller's signal aborts when the work starts;
 * - `waits`: nothing fails, but other work runs first.
 */
export const MODES = ['throws', 'throws after', 'hangs', 'is late', 'is aborted', 'waits'] as const;
export type Mode = (typeof MODES)[number];

interface Armed {
  id: number;
  mode: Mode;
  /** Number of the pass through this await, from 1. */
  pass: number;
  sleep: (milliseconds: number) => Promise<void>;
  abort: () => void;
}

/** The target of the inserted failpoints: counts the passes, and fails at the armed one. */
export class Failpoints {
  /** Number of passes through each await. */
  readonly passes = new Map<number, number>();
  /** Awaits that contain other awaits: they fail with these. */
  readonly outer = new Set<number>();
  armed: Armed | undefined;
  /** True after the armed failpoint was reached. */
  struck = false;
  readonly #around = new AsyncLocalStorage<{ id: number; isPending: boolean }>();

  install(): void {
    Object.assign(globalThis, { failpoint: this.#await, failpointInLoop: this.#loop });
  }

  uninstall(): void {
    for (const name of ['failpoint', 'failpointInLoop']) Reflect.deleteProperty(globalThis, name);
  }

  /** Arms a failpoint, or none, and resets the counts. */
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
    // The failpoint causes the delay on purpose.
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
    const next = () =>
      this.#await(id, () => iterator.next()).catch((error: unknown) => {
        void iterator.return?.();
        throw error;
      });
    return { [Symbol.asyncIterator]: () => ({ next: next as never }) };
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
