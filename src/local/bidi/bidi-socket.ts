import type { WebSocket } from 'ws';
import type { CheckedQuirks } from '../options/check-quirks.js';
import type { Lease } from '../pool/lease.js';
import { BidiSession } from './bidi-session.js';
import type { BidiLibrary } from './load-library.js';
import { failure, readCommand, success, type Command, type Message } from './messages.js';

/** Close codes of the websocket protocol. */
const NORMAL = 1000;
const GOING_AWAY = 1001;
const SERVER_ERROR = 1011;

/**
 * A client's BiDi websocket. What concerns the session itself (new, status, end) is decided here, all else by
 * chromium-bidi, which knows no end of a session and reports none in its status.
 */
export class BidiSocket {
  readonly #socket: WebSocket;
  readonly #library: BidiLibrary;
  readonly #lease: Lease;
  readonly #isShared: boolean;
  #session: BidiSession | undefined;
  #turn: Promise<void> = Promise.resolve();

  /** @param kind `existing`: a session exists from the start, and no command can end it. */
  constructor(socket: WebSocket, library: BidiLibrary, lease: Lease, kind: CheckedQuirks['bidiSession']) {
    this.#socket = socket;
    this.#library = library;
    this.#lease = lease;
    this.#isShared = kind === 'existing';
    if (this.#isShared) this.#inTurn(() => this.#openShared());
    socket.on('message', (data: Buffer) => this.#inTurn(() => this.#receive(data.toString())));
    socket.once('close', () => this.#session?.close());
    socket.on('error', () => socket.terminate());
  }

  /** Ends the connection; from now on no command reaches the browser. */
  cut(): void {
    this.#end(GOING_AWAY, 'The lease has ended.');
  }

  /** Commands keep their order, and wait for the session that they belong to. */
  #inTurn(step: () => void | Promise<void>): void {
    this.#turn = this.#turn.then(step).catch(() => this.#end(SERVER_ERROR, 'The browser does not answer.'));
  }

  async #receive(text: string): Promise<void> {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    const command = readCommand(text);
    if (!command)
      return this.#send(failure(undefined, 'invalid argument', 'The message is not a BiDi command.'));
    if (command.method === 'session.status') return this.#send(success(command, this.#status()));
    if (command.method === 'session.new') return this.#new(command);
    if (!this.#session)
      return this.#send(failure(command.id, 'invalid session id', 'There is no session yet.'));
    if (command.method === 'session.end') return this.#endSession(command);
    this.#session.send(command);
  }

  #status(): object {
    return this.#session
      ? { ready: false, message: 'A session exists already.' }
      : { ready: true, message: 'Ready for a session.' };
  }

  async #new(command: Command): Promise<void> {
    if (this.#session) {
      return this.#send(failure(command.id, 'session not created', 'A session exists already.'));
    }
    const answer = await this.#open(command);
    this.#send(answer['type'] === 'success' ? this.#withSessionId(answer) : answer);
  }

  /** Nobody asked for this session: its answer is not sent. */
  async #openShared(): Promise<void> {
    await this.#open({ id: 0, method: 'session.new', params: { capabilities: {} } });
  }

  /** Opens the session with this `session.new`; resolves to its answer. */
  async #open(command: Command): Promise<Message> {
    let onMessage = (message: Message): void => this.#send(message);
    const { chromium } = this.#lease.browser;
    this.#session = await BidiSession.open(this.#library, chromium, (message) => onMessage(message));
    if (this.#socket.readyState !== this.#socket.OPEN) this.#session.close();
    void this.#session.closed.then(() => this.#end(GOING_AWAY, 'The browser has ended.'));
    const answer = new Promise<Message>((resolve) => {
      onMessage = (message) => {
        if (message['id'] !== command.id) return this.#send(message);
        onMessage = (later) => this.#send(later);
        resolve(message);
      };
    });
    this.#session.send(command);
    return answer;
  }

  /** chromium-bidi calls every session "unknown". */
  #withSessionId(answer: Message): Message {
    const { result } = answer;
    return { ...answer, result: { ...(result as object), sessionId: this.#lease.browser.sessionId } };
  }

  #endSession(command: Command): void {
    this.#send(success(command, {}));
    if (!this.#isShared) this.#end(NORMAL, 'The session has ended.');
  }

  #send(message: Message): void {
    this.#socket.send(JSON.stringify(message), () => {});
  }

  #end(code: number, reason: string): void {
    this.#session?.close();
    this.#socket.close(code, reason);
    // A client that does not answer the close frame must not hold the socket.
    setTimeout(() => this.#socket.terminate(), 500).unref();
  }
}
