import type { AsyncLocalStorage } from 'node:async_hooks';
import { Script } from 'node:vm';

/** A method of any object. */
export type Method = (this: unknown, ...args: unknown[]) => unknown;

/** A call that is being followed. Neither method throws. */
export interface Followed {
  readonly hasEnded: boolean;
  /** The method has returned: returns what its caller gets. */
  returned(value: unknown): unknown;
  /** The method has thrown. */
  threw(error: unknown): void;
}

/** What happens around the calls of a method. Neither function throws. */
export interface Around {
  /** Returns undefined for a call that is not followed: it costs nothing else. */
  begin(object: unknown, name: string, args: unknown[]): Followed | undefined;
  /** In which call the code runs: a method runs in its own one, with all that it does later. */
  readonly running: AsyncLocalStorage<Pick<Followed, 'hasEnded'>>;
}

/**
 * The name of the file in which the replaced methods are. Playwright takes the line that called its method from the stack, for the
 * location of a step and the name in an error (`page.click: …`), and leaves out the files of Node. With any other name, the
 * location would be here, and the name that of the last method inside the library.
 */
const FILE = 'node:pooled-browser/calls';

/**
 * The method returns what `then` returns, instead of an `async` function's own promise: V8 then leaves nothing out of the stack of an
 * error, and adds no line to it. The lines of this method and of `run` count as lines of the stack, whose last ones would be missing.
 */
const SOURCE = `'use strict';
({ begin, running }, name, original) =>
  function (...args) {
    const limit = Error.stackTraceLimit;
    const setLimit = (more) => typeof limit === 'number' && Reflect.set(Error, 'stackTraceLimit', limit + more);
    const call = begin(this, name, args);
    setLimit(call ? 2 : 1);
    try {
      if (!call) return Reflect.apply(original, this, args);
      return call.returned(running.run(call, Reflect.apply, original, this, args));
    } catch (error) {
      call?.threw(error);
      throw error;
    } finally {
      setLimit(0);
    }
  }`;

type Wrap = (around: Around, name: string, original: Method) => Method;

let wrap: Wrap | undefined;

/** Methods of classes that are replaced until `restore`. */
export class PatchedMethods {
  readonly #around: Around;
  readonly #undo: (() => void)[] = [];
  /** The names of the methods by the prototype that has them. */
  readonly #patched = new Map<object, Set<string>>();

  constructor(around: Around) {
    this.#around = around;
  }

  /**
   * Replaces a method that an object has or inherits from a class, where it is defined: once for all objects of the class.
   * A name without a method is left out.
   */
  patch(prototype: object, name: string): void {
    for (let one = prototype; one && one !== Object.prototype; one = Object.getPrototypeOf(one) as object)
      if (Object.hasOwn(one, name)) return this.#patchOwn(one, name);
  }

  /** Gives a prototype a method of its own that calls the inherited one, whose other callers stay as they are. */
  override(prototype: object, name: string): void {
    if (Object.hasOwn(prototype, name)) return this.#patchOwn(prototype, name);
    const inherited: unknown = Reflect.get(prototype, name);
    if (typeof inherited !== 'function' || !Object.isExtensible(prototype)) return;
    const value = this.#replace(prototype, name, inherited as Method);
    if (value) Object.defineProperty(prototype, name, { value, configurable: true, writable: true });
    if (value)
      this.#undo.push(() => isStill(prototype, name, value) && Reflect.deleteProperty(prototype, name));
  }

  restore(): void {
    this.#undo.splice(0).forEach((undo) => undo());
    this.#patched.clear();
  }

  #patchOwn(owner: object, name: string): void {
    const descriptor = Object.getOwnPropertyDescriptor(owner, name)!;
    const original: unknown = descriptor.value;
    if (typeof original !== 'function' || !descriptor.configurable) return;
    const value = this.#replace(owner, name, original as Method);
    if (!value) return;
    Object.defineProperty(owner, name, { ...descriptor, value });
    // A spy of a test may have replaced the method since then, and restores the original itself.
    this.#undo.push(() => isStill(owner, name, value) && Object.defineProperty(owner, name, descriptor));
  }

  /** Returns undefined for a method that is replaced already. */
  #replace(owner: object, name: string, original: Method): Method | undefined {
    const names = this.#patched.get(owner) ?? new Set();
    if (names.has(name)) return undefined;
    this.#patched.set(owner, names.add(name));
    wrap ??= new Script(SOURCE, { filename: FILE }).runInThisContext() as Wrap;
    const method = wrap(this.#around, name, original);
    for (const property of ['name', 'length']) {
      const value: unknown = Reflect.get(original, property);
      Object.defineProperty(method, property, { value, configurable: true });
    }
    return method;
  }
}

function isStill(owner: object, name: string, method: Method): boolean {
  return Object.getOwnPropertyDescriptor(owner, name)?.value === method;
}
