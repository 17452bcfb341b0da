import { isRecord } from '../shared/json.js';
import type { Message } from './wire.js';

/** Most commands without a response, so that a browser that never responds does not fill the memory. */
const MOST_OPEN = 100_000;

/** The commands that calls of the caller send. The libraries also send commands by themselves, for example to set up a page. */
const OF_CALLERS =
  /^(Runtime\.(evaluate|callFunctionOn)|Page\.(navigate\w*|reload|captureScreenshot|printToPDF)|Input\.\w+|script\.(callFunction|evaluate)|browsingContext\.(navigate|reload|captureScreenshot|print)|input\.\w+)$/;

const NO_SESSION = -32_001;

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
  add({ id, method, sessionId }: Message): void {
    if (id === undefined) return;
    const [oldest] = this.#methods.size < MOST_OPEN ? [] : this.#methods.keys();
    if (oldest !== undefined) this.#methods.delete(oldest);
    this.#methods.set(keyOf(id, sessionId), method ?? '');
  }

  /**
   * Notes a message. Returns false for what no library may receive: it would throw where nobody can catch it, or forget the commands of a
   * session. This is what is neither a response nor an event, a response that no command waits for, and the beginning of what has begun
   * already.
   */
  take(message: Message): boolean {
    const { type, id, method, params, error, sessionId } = message;
    // WebDriver BiDi has types of messages, and errors without an id.
    if (type === 'event' && (method === undefined || params === undefined)) return false;
    if (id === undefined && method === undefined && (type !== 'error' || error === undefined)) return false;
    if (!this.#note(message)) return false;
    if (id === undefined || this.#methods.delete(keyOf(id, sessionId))) return true;
    // Chromium omits the id of a session that it no longer has.
    return isRecord(error) && error['code'] === NO_SESSION && this.#remove((key) => key.startsWith(`${id} `));
  }

  /** Notes what an event begins or ends. Returns false for the beginning of what has begun already. */
  #note({ method, params = {}, sessionId = '' }: Message): boolean {
    const { sessionId: session, frameId, frame } = params;
    const frames = `frame ${sessionId} `;
    switch (method) {
      // No session has the id of an earlier one.
      case 'Target.attachedToTarget':
        return this.#begin(`session ${JSON.stringify(session)}`);
      // The commands of a session that has ended have no response.
      case 'Target.detachedFromTarget':
        if (typeof session === 'string') this.#remove((key) => key.endsWith(` ${session}`));
        return true;
      case 'Page.frameAttached':
        return this.#begin(`${frames}${JSON.stringify(frameId)}`);
      case 'Page.frameDetached':
        this.#begun.delete(`${frames}${JSON.stringify(frameId)}`);
        return true;
      // The frames of the document before it end without an event.
      case 'Page.frameNavigated':
        if (isRecord(frame) && frame['parentId'] !== undefined) return true;
        for (const one of this.#begun) if (one.startsWith(frames)) this.#begun.delete(one);
        return true;
      default:
        return true;
    }
  }

  #begin(what: string): boolean {
    if (this.#begun.has(what)) return false;
    if (this.#begun.size < MOST_OPEN) this.#begun.add(what);
    return true;
  }

  #remove(isMeant: (key: string) => boolean): boolean {
    const keys = [...this.#methods.keys()].filter(isMeant);
    return keys.map((key) => this.#methods.delete(key)).length > 0;
  }
}

function keyOf(id: number, sessionId = ''): string {
  return `${id} ${sessionId}`;
}
