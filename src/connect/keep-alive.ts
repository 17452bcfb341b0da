import { clock, startTimer } from '../shared/clock.js';
import { FIRST_ID } from './cdp-client.js';
import { readMessage } from './message.js';
import type { Frame, Protocol } from './wire.js';

/** Commands that change nothing. */
const COMMANDS: Readonly<Record<Protocol, string>> = { cdp: 'Browser.getVersion', bidi: 'session.status' };
/** Below the ids of `CdpClient`, and above those of every library. */
const ID = FIRST_ID;
/** Largest answer to one of the commands, in bytes. */
const LARGEST_ANSWER = 64 * 1024;

/** When a connection needs a command, for a service that closes one without commands. */
export interface KeepAlivePlan {
  /** Milliseconds since the last message to the browser. */
  readonly after: number;
  readonly protocol: Protocol;
}

/** Sends a command that changes nothing whenever a connection has carried none for a time. Its client sees no answer. */
export class KeepAlive {
  readonly #plan: KeepAlivePlan;
  readonly #send: (command: string) => void;
  #lastSent = clock.now();
  #isAwaited = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(plan: KeepAlivePlan, send: (command: string) => void) {
    this.#plan = plan;
    this.#send = send;
    this.#wait(plan.after);
  }

  /** Notes a message to the browser. */
  noteSent(): void {
    this.#lastSent = clock.now();
  }

  /** Whether a message is the answer to a command of this object. */
  isAnswer(data: Frame): boolean {
    if (!this.#isAwaited || !(data instanceof Uint8Array) || data.length > LARGEST_ANSWER) return false;
    if (readMessage(data).id !== ID) return false;
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
    this.#send(JSON.stringify({ id: ID, method: COMMANDS[protocol], params: {} }));
    this.noteSent();
    this.#wait(after);
  }
}
