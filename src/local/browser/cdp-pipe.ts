import type { Readable, Writable } from 'node:stream';
import type { CdpBrowser, CdpChannel, CdpMessage, CdpReceiver } from '../../wire/cdp-source.js';
import { isRecord, LARGEST_MESSAGE } from '../../shared/json.js';
import { LargeMessage } from './large-message.js';

/** A command without a response. */
interface Pending {
  /** The client; undefined for a command of the pipe itself. */
  readonly client: PipeClient | undefined;
  readonly onResponse: (response: CdpMessage, large?: LargeMessage) => void;
}

/** Who sends a command. */
interface Sender {
  readonly client?: PipeClient;
  /** The command, if only its ends are read. */
  readonly large?: LargeMessage | undefined;
}

/** Ends each message on the pipe. JSON contains none. */
const END = '\0';

/**
 * The only connection to a Chromium: a pipe, which no other program can open. Each client has its own browser session
 * (`Target.attachToBrowserTarget`), and its commands get other ids on the pipe.
 */
export class CdpPipe implements CdpBrowser {
  readonly #input: Writable;
  /** By the id on the pipe. */
  readonly #pending = new Map<number, Pending>();
  readonly #owners = new Map<string, PipeClient>();
  #unfinished: Buffer[] = [];
  /** Bytes of the unfinished message. */
  #size = 0;
  #lastId = 0;
  #hasEnded = false;
  readonly #waiting: (() => void)[] = [];

  /** @param input Chromium reads from it. @param output Chromium writes to it. */
  constructor(input: Writable, output: Readable) {
    this.#input = input;
    output.on('data', (chunk: Buffer) => this.#read(chunk));
    output.once('close', () => this.#end());
    input.on('drain', () => this.#resume());
  }

  /** Whether Chromium reads more slowly than its clients send. */
  get isFull(): boolean {
    return this.#input.writableNeedDrain;
  }

  /** Resolves when Chromium has read what was sent, or has ended. */
  readonly drained = (): Promise<void> =>
    new Promise((resolve) => {
      this.#waiting.push(resolve);
    });

  /** Adds a client. Rejects when Chromium has ended. */
  async connect(receiver: CdpReceiver): Promise<PipeClient> {
    const { result } = await new Promise<CdpMessage>((resolve) => {
      this.#send({ method: 'Target.attachToBrowserTarget' }, resolve);
    });
    if (!isRecord(result) || this.#hasEnded) throw new Error('The browser has ended.');
    const session = String(result['sessionId']);
    const client: PipeClient = new PipeClient(session, receiver, {
      send: (command, onResponse, large) => this.#send(command, onResponse, { client, large }),
      close: () => this.#close(client),
    });
    this.#owners.set(session, client);
    return client;
  }

  /** @param onResponse Receives an empty response when Chromium has ended. */
  #send(command: CdpMessage, onResponse: Pending['onResponse'], { client, large }: Sender = {}): void {
    if (this.#hasEnded) return onResponse({});
    const id = ++this.#lastId;
    const whole = { ...command, id };
    this.#input.cork();
    for (const part of large?.withEnds(whole) ?? [JSON.stringify(whole)]) this.#input.write(part);
    this.#input.write(END);
    this.#input.uncork();
    this.#pending.set(id, { client, onResponse });
  }

  #close(client: PipeClient): void {
    for (const [session, owner] of this.#owners) if (owner === client) this.#owners.delete(session);
    // Chromium never answers the commands of a detached session.
    for (const [id, { client: sender }] of this.#pending) if (sender === client) this.#pending.delete(id);
    this.#send({ method: 'Target.detachFromTarget', params: { sessionId: client.session } }, () => {});
  }

  #read(chunk: Buffer): void {
    if (this.#size > LARGEST_MESSAGE) return;
    let bytes = chunk;
    for (let at = bytes.indexOf(END); at !== -1; at = bytes.indexOf(END)) {
      const data = Buffer.concat([...this.#unfinished, bytes.subarray(0, at)]);
      this.#unfinished = [];
      this.#size = 0;
      bytes = bytes.subarray(at + 1);
      const large = LargeMessage.read(data);
      this.#dispatch(large?.ends ?? (JSON.parse(String(data)) as CdpMessage), large);
    }
    if (bytes.length === 0) return;
    this.#unfinished.push(bytes);
    this.#size += bytes.length;
    if (this.#size <= LARGEST_MESSAGE) return;
    // A page decides how much Chromium reports of it. Without its input, Chromium ends.
    this.#unfinished = [];
    this.#input.destroy();
  }

  /** @param large The message, if `message` has only its ends. */
  #dispatch(message: CdpMessage, large: LargeMessage | undefined): void {
    const { id, method, params, sessionId } = message;
    if (typeof id === 'number') {
      const pending = this.#pending.get(id);
      this.#pending.delete(id);
      return pending?.onResponse(message, large);
    }
    // Events of the pipe's own session have no sessionId.
    const owner = typeof sessionId === 'string' ? this.#owners.get(sessionId) : undefined;
    if (!owner) return;
    // Sessions that a client opens in its browser session are its own.
    const target = isRecord(params) ? String(params['sessionId']) : '';
    if (method === 'Target.attachedToTarget') this.#owners.set(target, owner);
    if (method === 'Target.detachedFromTarget') this.#owners.delete(target);
    owner.receive(message, large);
  }

  #resume(): void {
    for (const resume of this.#waiting.splice(0)) resume();
  }

  #end(): void {
    this.#hasEnded = true;
    this.#resume();
    for (const client of new Set(this.#owners.values())) client.end();
    for (const { onResponse } of this.#pending.values()) onResponse({});
  }
}

/** What a client can do with the pipe. */
interface PipeAccess {
  send(command: CdpMessage, onResponse: Pending['onResponse'], large?: LargeMessage): void;
  close(): void;
}

/** A client of a Chromium. To the client, the pipe looks like a separate connection. */
export class PipeClient implements CdpChannel {
  /** The browser session of the client, which the client is not aware of. */
  readonly session: string;
  readonly #receiver: CdpReceiver;
  readonly #pipe: PipeAccess;
  #hasEnded = false;

  constructor(session: string, receiver: CdpReceiver, pipe: PipeAccess) {
    this.session = session;
    this.#receiver = receiver;
    this.#pipe = pipe;
  }

  /**
   * Sends a command. Anything else is answered with an error.
   *
   * @param large The command, if `command` has only its ends.
   */
  send(command: unknown, large?: LargeMessage): void {
    if (this.#hasEnded) return;
    if (!isRecord(command) || !Number.isSafeInteger(command['id']))
      return this.#receiver.onMessage(NOT_A_COMMAND);
    const { id, sessionId } = command;
    // Chromium treats an empty session as the pipe's own session, whose settings would outlive the client.
    const session = sessionId === undefined || sessionId === '' ? this.session : sessionId;
    const receive: Pending['onResponse'] = (response, answer) => this.receive({ ...response, id }, answer);
    this.#pipe.send({ ...command, sessionId: session }, receive, large);
  }

  /** @param large The message, if `message` has only its ends. */
  receive(message: CdpMessage, large?: LargeMessage): void {
    if (this.#hasEnded) return;
    const { sessionId, ...rest } = message;
    const ends = sessionId === this.session ? rest : message;
    if (large && this.#receiver.onLarge) return this.#receiver.onLarge(Buffer.concat(large.withEnds(ends)));
    const whole = large ? large.parsed(ends) : ends;
    if (whole) this.#receiver.onMessage(whole);
  }

  /** Ends the client. Chromium then undoes what it set up, and resumes what it paused. */
  close(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#pipe.close();
  }

  /** Chromium has ended. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#receiver.onEnd();
  }
}

const NOT_A_COMMAND: CdpMessage = {
  error: { code: -32_600, message: 'The message must be a JSON object with an integer id' },
};
