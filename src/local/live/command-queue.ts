import type { LiveCommand } from './live-commands.js';

/** Maximum number of commands that are sent to the browser without an answer. It performs them in order. */
const IN_FLIGHT = 32;
/** Maximum number of waiting commands. */
const LONGEST = 256;

/**
 * The commands of one viewer on their way to the browser. If a viewer sends faster than the page can execute, the
 * oldest mouse moves are dropped, or else the new command.
 */
export class CommandQueue {
  readonly #perform: (command: LiveCommand) => Promise<void>;
  readonly #waiting: LiveCommand[] = [];
  #inFlight = 0;
  #others = 0;

  /** @param perform May reject, for example for a key press in a page that has just closed. */
  constructor(perform: (command: LiveCommand) => Promise<void>) {
    this.#perform = perform;
  }

  add(command: LiveCommand): void {
    if (!isInput(command)) return this.#runAtOnce(command);
    if (this.#waiting.length >= LONGEST && !this.#dropMove()) return;
    this.#waiting.push(command);
    this.#next();
  }

  #runAtOnce(command: LiveCommand): void {
    if (this.#others >= IN_FLIGHT) return;
    this.#others++;
    void this.#run(command).finally(() => this.#others--);
  }

  #dropMove(): boolean {
    const at = this.#waiting.findIndex(isMove);
    if (at !== -1) this.#waiting.splice(at, 1);
    return at !== -1;
  }

  #next(): void {
    while (this.#inFlight < IN_FLIGHT && this.#waiting.length > 0) {
      this.#inFlight++;
      void this.#run(this.#waiting.shift()!).finally(() => {
        this.#inFlight--;
        this.#next();
      });
    }
  }

  async #run(command: LiveCommand): Promise<void> {
    await this.#perform(command).catch(() => {});
  }
}

/** A page with an open dialog does not respond to input, and other commands, such as reload, must not wait for it. */
function isInput({ type }: LiveCommand): boolean {
  return type === 'mouse' || type === 'wheel' || type === 'key' || type === 'text';
}

function isMove(command: LiveCommand): boolean {
  return command.type === 'mouse' && command.action === 'mouseMoved';
}
