import type { Readable, Writable } from 'node:stream';
import { LONGEST_MATCH, readCommand, sessionOf } from './cdp-message.js';

/** Ends each message on the pipe. */
const END = 0;
/** Chromium writes `id` or `method` first. */
const HEAD = /^\{"(?:id":(\d+)|method":"([\w.]+)")/;
/** Events that open or close a session of a client. */
const ATTACHED = 'Target.attachedToTarget';
const DETACHED = 'Target.detachedFromTarget';

/** Receives what Chromium sends to a client. */
export interface CdpReceiver {
  /** The JSON of a response or an event. */
  onMessage(message: Buffer): void;
  /** Chromium has ended. */
  onEnd(): void;
}

/** A client of a Chromium. To the client, the pipe looks like a separate connection. */
export interface CdpClient {
  /** Sends the JSON of a command. */
  send(command: string): void;
  /** Ends the client. Chromium then undoes what it set up, and resumes what it paused. */
  close(): void;
}

/** A browser that clients can connect to. */
export interface CdpBrowser {
  connect(receiver: CdpReceiver): Promise<CdpClient>;
}

/**
 * The only connection to a Chromium: a pipe, which no other program can open. Each client has its own browser session
 * (`Target.attachToBrowserTarget`). Commands get other ids on the pipe. Messages are passed on by their first and last
 * bytes: a large screenshot is not parsed.
 */
export class CdpPipe implements CdpBrowser {
  readonly #input: Writable;
  /** The commands without a response, by their id on the pipe. */
  readonly #pending = new Map<number, Pending>();
  /** The clients of all CDP sessions. */
  readonly #owners = new Map<string, PipeClient>();
  #unfinished: Buffer[] = [];
  #lastId = 0;
  #hasEnded = false;

  /** @param input Chromium reads from it. @param output Chromium writes to it. */
  constructor(input: Writable, output: Readable) {
    this.#input = input;
    output.on('data', (chunk: Buffer) => this.#read(chunk));
    output.once('close', () => this.#end());
  }

  async connect(receiver: CdpReceiver): Promise<CdpClient> {
    const session = await this.#attach();
    if (this.#hasEnded) throw browserEnded();
    const client = new PipeClient(session, receiver, {
      write: (command) => this.#input.write(command),
      expect: (onResponse) => this.#expect(client, onResponse),
      close: () => this.#close(client),
    });
    this.#owners.set(session, client);
    return client;
  }

  /** Opens a browser session. Rejects when Chromium ends. */
  #attach(): Promise<string> {
    return new Promise((resolve, reject) => {
      const gone = () => reject(browserEnded());
      if (this.#hasEnded) return gone();
      const id = this.#expect(undefined, (message) => {
        const sessionId = /"sessionId":"([\w-]+)"/.exec(message.toString())?.[1];
        if (sessionId === undefined) gone();
        else resolve(sessionId);
      });
      this.#input.write(`{"id":${id},"method":"Target.attachToBrowserTarget"}\0`);
    });
  }

  /** @returns The id for a command. */
  #expect(owner: PipeClient | undefined, onResponse: (message: Buffer) => void): number {
    this.#pending.set(++this.#lastId, { owner, onResponse });
    return this.#lastId;
  }

  #close(client: PipeClient): void {
    for (const [session, owner] of this.#owners) if (owner === client) this.#owners.delete(session);
    // Chromium never answers the commands of a detached session.
    for (const [id, { owner }] of this.#pending) if (owner === client) this.#pending.delete(id);
    const id = this.#expect(undefined, () => {});
    const params = `{"sessionId":"${client.session}"}`;
    this.#input.write(`{"id":${id},"method":"Target.detachFromTarget","params":${params}}\0`);
  }

  #read(chunk: Buffer): void {
    let bytes = chunk;
    for (let at = bytes.indexOf(END); at !== -1; at = bytes.indexOf(END)) {
      const end = bytes.subarray(0, at);
      const message = this.#unfinished.length === 0 ? end : Buffer.concat([...this.#unfinished, end]);
      this.#unfinished = [];
      bytes = bytes.subarray(at + 1);
      this.#dispatch(message);
    }
    if (bytes.length > 0) this.#unfinished.push(bytes);
  }

  #dispatch(message: Buffer): void {
    const [, id, method] = HEAD.exec(message.toString('latin1', 0, LONGEST_MATCH)) ?? [];
    if (id !== undefined) {
      const pending = this.#pending.get(Number(id));
      this.#pending.delete(Number(id));
      return pending?.onResponse(message);
    }
    // Events of the pipe's own session have no sessionId.
    const session = sessionOf(message);
    const owner = session === undefined ? undefined : this.#owners.get(session);
    if (owner && (method === ATTACHED || method === DETACHED)) this.#track(method, message, owner);
    owner?.receive(message, session);
  }

  /** Sessions that a client opens in its browser session are its own. */
  #track(method: string, message: Buffer, owner: PipeClient): void {
    const { params } = JSON.parse(message.toString()) as { params: { sessionId: string } };
    if (method === ATTACHED) this.#owners.set(params.sessionId, owner);
    else this.#owners.delete(params.sessionId);
  }

  #end(): void {
    this.#hasEnded = true;
    const clients = new Set(this.#owners.values());
    const pending = [...this.#pending.values()];
    this.#owners.clear();
    this.#pending.clear();
    for (const { onResponse } of pending) onResponse(NOTHING);
    for (const client of clients) client.end();
  }
}

function browserEnded(): Error {
  return new Error('The browser has ended.');
}

const NOTHING = Buffer.from('{}');

interface Pending {
  readonly owner: PipeClient | undefined;
  readonly onResponse: (message: Buffer) => void;
}

interface PipeAccess {
  write(command: string): void;
  expect(onResponse: (message: Buffer) => void): number;
  close(): void;
}

class PipeClient implements CdpClient {
  readonly session: string;
  readonly #receiver: CdpReceiver;
  readonly #pipe: PipeAccess;
  #isOver = false;

  constructor(session: string, receiver: CdpReceiver, pipe: PipeAccess) {
    this.session = session;
    this.#receiver = receiver;
    this.#pipe = pipe;
  }

  send(command: string): void {
    if (this.#isOver) return;
    const { own, withId } = readCommand(command, this.session);
    if (!Number.isSafeInteger(own)) return this.#receiver.onMessage(NOT_A_COMMAND);
    const id = this.#pipe.expect((response) => this.receive(response, sessionOf(response), { own, id }));
    this.#pipe.write(`${withId(id)}\0`);
  }

  /** @param ids The client's id of a command, and that on the pipe. */
  receive(message: Buffer, session: string | undefined, ids?: { own: unknown; id: number }): void {
    if (this.#isOver || message === NOTHING) return;
    const parts = [message];
    // The client is not aware of its browser session, so the id of that session is removed.
    if (session === this.session) {
      const tail = `,"sessionId":"${session}"}`.length;
      parts[0] = message.subarray(0, message.length - tail);
      parts.push(BRACE);
    }
    if (ids) {
      parts[0] = parts[0]!.subarray(`{"id":${ids.id}`.length);
      parts.unshift(Buffer.from(`{"id":${JSON.stringify(ids.own)}`));
    }
    this.#receiver.onMessage(parts.length === 1 ? message : Buffer.concat(parts));
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#pipe.close();
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#receiver.onEnd();
  }
}

const BRACE = Buffer.from('}');
const NOT_A_COMMAND = Buffer.from(
  '{"error":{"code":-32600,"message":"The message must be a JSON object with an integer id"}}',
);
