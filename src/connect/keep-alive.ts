import { clock, startTimer } from '../shared/clock.js';
import { FIRST_ID } from './cdp-client.js';
import type { Message, Protocol } from './wire.js';

/** Commands that change nothing. */
const COMMANDS: Readonly<Record<Protocol, string>> = { cdp: 'Browser.getVersion', bidi: 'session.status' };
/** Below the ids of `CdpClient`, and above those of every library. */
const ID = FIRST_ID;

/** When a connection needs a command, for a service that closes one without commands. */
export interface KeepAlivePlan {
  /** Milliseconds since the last message to the browser. */
  readonly after: number;
  readonly protocol: Protocol;
}

/** Sends a command that changes nothing whenever a connection has carried none for a time. Its client sees no answer. */
export class KeepAlive {
  readonly #plan: KeepAlivePlan;
  readonly #send: (command: Message) => void;
  #lastSent = clock.now();
  #isAwaited = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(plan: KeepAlivePlan, send: (command: Message) => void) {
    this.#plan = plan;
    this.#send = send;
    this.#wait(plan.after);
  }

  /** Notes a message to the browser. */
  noteSent(): void {
    this.#lastSent = clock.now();
  }

  /** Whether a message is the answer to a command of this object. */
  isAnswer({ id }: Message): boolean {
    if (!this.#isAwaited || id !== ID) return false;
    this.#isAwaited = false;
    return true;
  }

  stop(): void {
    clock.clearTimeout(this.#timer);
  }

  #wait(milliseconds: number): void {
    // The lease keeps the process alive, if anything does.
    this.#timer = startTimer(milliseconds, () => this.#check())?.unref();
  }

  #check(): void {
    const { after, protocol } = this.#plan;
    const left = after - (clock.now() - this.#lastSent);
    if (left > 0) return this.#wait(left);
    this.#isAwaited = true;
    this.#send({ id: ID, method: COMMANDS[protocol], params: {} });
    this.noteSent();
    this.#wait(after);
  }
}
