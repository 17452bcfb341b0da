import { partOf } from './message.js';
import type { Frame } from './socket.js';

/** Length of the beginning and of the end of a message in which its id is, in bytes. */
const MARGIN = 160;
/** The libraries send the id first or last. */
const FIRST_ID = /^\s*\{"id":(\d+)/;
const LAST_ID = /"id":(\d+)(?:,"sessionId":"[^"]*")?\}\s*$/;
const METHOD = /"method":"([\w.]+)"/;
const RESPONSE = /^\s*\{(?:"type":"\w+",|"error":"[^"]*",)?"id":(\d+)/;

/** The commands that calls of the caller send. The libraries also send commands by themselves, for example to set up a page. */
const OF_CALLERS =
  /^(Runtime\.(evaluate|callFunctionOn)|Page\.(navigate\w*|reload|captureScreenshot|printToPDF)|Input\.\w+|script\.(callFunction|evaluate)|browsingContext\.(navigate|reload|captureScreenshot|print)|input\.\w+)$/;

/** The commands of a library that have no response yet. Reads only the ends of a message, which can have megabytes. */
export class PendingCalls {
  /** The methods by the id of their command. */
  readonly #methods = new Map<string, string>();
  /** A service can format its responses in another way. */
  #isReadable = false;

  get pending(): readonly string[] {
    return this.#isReadable ? [...this.#methods.values()].filter((method) => OF_CALLERS.test(method)) : [];
  }

  noteCommand(data: string | Frame): void {
    const head = partOf(data, 0, MARGIN);
    const method = METHOD.exec(head)?.[1];
    const id = FIRST_ID.exec(head) ?? LAST_ID.exec(partOf(data, -MARGIN));
    if (id && method !== undefined) this.#methods.set(id[1]!, method);
  }

  noteResponse(data: Frame): void {
    const id = RESPONSE.exec(partOf(data, 0, MARGIN))?.[1];
    if (id !== undefined && this.#methods.delete(id)) this.#isReadable = true;
  }
}
