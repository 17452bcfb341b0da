import type { EventParams } from '../../wire/message.js';
import type { Context } from './context.js';
import type { AttachedTarget } from './targets.js';

/** Number of refusals that have not reached their pages. */
const MOST_REFUSALS = 256;

/** A script that has called the function: any script can, with anything. */
export interface Caller {
  readonly target: AttachedTarget;
  readonly contextId: number;
  /** Of its document or worker: a session and a JavaScript context. */
  readonly place: string;
}

/** What a session, or one of its JavaScript contexts, begins the keys of its callers with. */
export function prefixOf(sessionId: string, contextId?: number): string {
  return `${sessionId} ${contextId === undefined ? '' : `${contextId} `}`;
}

/**
 * A function of pages and workers: a script of ours calls it to reach this process, and puts one of its name in its place that receives
 * the messages of this process.
 */
export class PageFunction {
  readonly #name: string;
  readonly #context: Pick<Context, 'cdp' | 'targets'>;
  /** Refusals that have not reached their pages. */
  #refusals = 0;

  constructor(name: string, context: Pick<Context, 'cdp' | 'targets'>) {
    this.#name = name;
    this.#context = context;
  }

  /** Adds the function to a page or a worker. */
  async add({ sessionId }: AttachedTarget): Promise<void> {
    await this.#context.cdp.send('Runtime.addBinding', { name: this.#name }, sessionId);
  }

  /** Returns who has called it; undefined if another function was called, or the page has gone. */
  callerOf(
    { name, executionContextId: contextId }: EventParams<'Runtime.bindingCalled'>,
    sessionId: string,
  ): Caller | undefined {
    const target = name === this.#name ? this.#context.targets.of(sessionId) : undefined;
    return target && { target, contextId, place: `${sessionId} ${contextId}` };
  }

  /** Resolves with the answer of the page to a message; undefined if it can't receive it. */
  async tell({ target, contextId }: Caller, message: object): Promise<unknown> {
    const call = {
      functionDeclaration: `function (message) { return globalThis.${this.#name}?.(message); }`,
      executionContextId: contextId,
      // Not in the code of an expression, which the browser would keep for some time.
      arguments: [{ value: message }],
      awaitPromise: true,
      returnByValue: true,
    };
    const told = this.#context.cdp.send('Runtime.callFunctionOn', call, target.sessionId);
    return told.then(({ result }) => result.value).catch(() => {});
  }

  /** Answers a call that has no effect. A page can call without an end, and not take the answers. */
  async refuse(caller: Caller, message: object): Promise<void> {
    if (this.#refusals >= MOST_REFUSALS) return;
    this.#refusals++;
    await this.tell(caller, message);
    this.#refusals--;
  }
}

/** The script that opens the channel of a function in pages and workers, before their own scripts, and replaces something there. */
export function scriptOf<Values>(
  replace: (open: OpenChannel, name: string, values: Values) => void,
  name: string,
  values: Values,
): string {
  return `(${String(replace)})(${String(openChannel)}, '${name}', ${JSON.stringify(values)});`;
}

/**
 * Returns what passes a message to this process; undefined if there is nothing, or the channel is open.
 *
 * @param lose Called when the script runs again: this process has lost its connection.
 */
export type OpenChannel = (
  name: string,
  receive: (message: never) => unknown,
  lose: () => void,
) => ((message: string) => void) | undefined;

/** Runs in pages and workers, and so uses nothing of this module. */
const openChannel: OpenChannel = (name, receive, lose) => {
  type Passing = ((message: string) => void) & { lose?: () => void };
  const pass = (globalThis as unknown as Record<string, Passing | undefined>)[name];
  pass?.lose?.();
  if (!pass || pass.lose) return undefined;
  // Not writable: a later connection adds its function again.
  const how = { writable: false, enumerable: false, configurable: true };
  Object.defineProperty(globalThis, name, { value: Object.assign(receive, { lose }), ...how });
  return pass;
};
