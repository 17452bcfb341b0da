import { jsonOf, isRecord } from '../shared/json.js';
import type { Envelope } from './message.js';
import { partOf, type Frame } from './wire.js';

/** Most commands without a response, so that a browser that never responds does not fill the memory. */
const MOST_OPEN = 100_000;

/** The commands that calls of the caller send. The libraries also send commands by themselves, for example to set up a page. */
const OF_CALLERS =
  /^(Runtime\.(evaluate|callFunctionOn)|Page\.(navigate\w*|reload|captureScreenshot|printToPDF)|Input\.\w+|script\.(callFunction|evaluate)|browsingContext\.(navigate|reload|captureScreenshot|print)|input\.\w+)$/;

/** The commands of a connection that have no response yet, and what has begun and not ended there. */
export class OpenCommands {
  /** The methods, by the session and the id of their command. */
  readonly #methods = new Map<string, string>();
  readonly #begun = new Set<string>();

  /** The methods of those that calls of the caller have sent, in their order. */
  get ofCallers(): readonly string[] {
    return [...this.#methods.values()].filter((method) => OF_CALLERS.test(method));
  }

  /** Adds a command that is sent. */
  add(data: string | Frame): void {
    // A command can have its id anywhere.
    const command = jsonOf(partOf(data, 0));
    if (!isRecord(command)) return;
    const { id, method, sessionId } = command;
    if (typeof id !== 'number') return;
    const [oldest] = this.#methods.size < MOST_OPEN ? [] : this.#methods.keys();
    if (oldest !== undefined) this.#methods.delete(oldest);
    this.#methods.set(keyOf(id, sessionId), String(method));
  }

  /**
   * Notes a message. Returns false for a response that no command waits for, and for the beginning of what has begun already: a
   * library would throw where nobody can catch it, or forget the commands of a session.
   */
  take({ id, sessionId, detached, begins, ends, isOfNoSession }: Envelope): boolean {
    if (begins !== undefined) {
      if (this.#begun.has(begins)) return false;
      if (this.#begun.size < MOST_OPEN) this.#begun.add(begins);
    }
    if (ends !== undefined) this.#end(ends);
    // The commands of a session that has ended have no response.
    if (detached !== undefined) this.#remove((key) => key.endsWith(` ${detached}`));
    if (id === undefined || this.#methods.delete(keyOf(id, sessionId))) return true;
    return isOfNoSession === true && this.#remove((key) => key.startsWith(`${id} `));
  }

  #end(what: string): void {
    this.#begun.delete(what);
    if (!what.endsWith(' ')) return;
    for (const one of this.#begun) if (one.startsWith(what)) this.#begun.delete(one);
  }

  #remove(isMeant: (key: string) => boolean): boolean {
    const keys = [...this.#methods.keys()].filter(isMeant);
    return keys.map((key) => this.#methods.delete(key)).length > 0;
  }
}

function keyOf(id: unknown, sessionId: unknown): string {
  return `${String(id)} ${typeof sessionId === 'string' ? sessionId : ''}`;
}
