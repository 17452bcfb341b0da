import type { IncomingMessage } from 'node:http';
import type { Socket as NetSocket } from 'node:net';
import type { WebSocket } from 'ws';
import { openConnection } from '../net/connection.js';
import { withNativeRequests } from '../net/native-requests.js';
import { explain } from '../net/reachability.js';
import { messageOfBody } from '../net/response.js';
import type { SpareConnection } from '../net/spare-connection.js';
import { clock } from '../shared/clock.js';
import { sentence } from '../shared/errors.js';
import { ConnectError, type LossReason } from '../shared/lease-errors.js';
import { LARGEST_MESSAGE } from '../shared/json.js';
import { routeTo, type NetworkSettings } from '../shared/network.js';
import { loadWs } from '../shared/lazy.js';
import { endTasks } from '../shared/process-state.js';
import { USER_AGENT } from '../shared/version.js';
import { Heartbeat } from './heartbeat.js';
import { KeepAlive, type KeepAlivePlan } from './keep-alive.js';
import { MisfitError, parseMessage, readMessage } from './message.js';
import { OpenCommands } from './open-commands.js';
import type { CdpCarrier, Frame, Message, Protocol, WireMessage } from './wire.js';

/** Why a socket ended; `closed-by-us` is the expected end. */
export type SocketEnd = LossReason | 'closed-by-us';

/** @internal A connection for commands of our own, with CDP. */
export type CdpSocket = Pick<Socket, 'takeOver' | 'ended' | 'detached' | 'cut'>;

/** @internal Opens a further connection to the browser, with CDP: a WebSocket, or a session where a second WebSocket would be another lease. */
export type OpenCdp = (signal: AbortSignal) => Promise<CdpSocket>;

/** Opens a connection for a further client of the browser, whose messages pass the rules of the lease. Default: its protocol. */
export type OpenClient = (signal: AbortSignal, protocol?: Protocol) => Promise<AnySocket>;

/** @internal Sees the messages of both directions before their receiver does. */
export interface SocketTap {
  /** Returns the command to send; undefined for none. */
  command(command: WireMessage<string | Frame>): WireMessage<string | Frame> | undefined;
  /** Returns the message for the library, possibly later; undefined for none. */
  message(message: WireMessage): WireMessage | undefined | Promise<WireMessage | undefined>;
}

interface SocketOptions {
  readonly network?: NetworkSettings;
  /** A connection that may be open already, and is remembered for the next WebSocket. */
  readonly spare?: SpareConnection | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** For a service that closes a connection without commands. By default, none is sent by itself. */
  readonly keepAlive?: KeepAlivePlan | undefined;
}

/** Milliseconds that the closing handshake may take. */
const CLOSE_TIMEOUT = 1000;

/** A connection to a browser: the whole socket, or one session within it. */
export interface AnySocket extends Pick<
  Socket,
  'send' | 'onSent' | 'pause' | 'resume' | 'ended' | 'detached' | 'close' | 'cut'
> {
  /** Receives each message. Set it before you send the first message. */
  onMessage: Socket['onMessage'];
  /** Number of bytes that wait for a slow network or browser. */
  readonly unsent: number;
  /** @internal */
  sendRead: Socket['sendRead'];
  /** @internal */
  deliver: Socket['deliver'];
}

/**
 * The WebSocket to a leased browser. It follows no redirect, detects a dead connection within 15 s, and does not show the
 * JWT in errors, in contrast to the libraries' own WebSockets (see src/connect/README.md).
 */
export class Socket {
  /** Resolves with the first reason why the socket ended. */
  readonly ended: Promise<SocketEnd>;
  /** Resolves when the library can no longer use the socket: at its end, or when it was taken over. */
  readonly detached: Promise<void>;
  /** @internal Receives each message. */
  deliver: (message: WireMessage, isBinary: boolean) => unknown = () => {};
  /** @internal Sees each message. */
  tap: SocketTap | undefined;
  /** The library can no longer use the socket, though it is open. */
  isTakenOver = false;

  readonly #websocket: WebSocket;
  #end: SocketEnd | undefined;
  readonly #commands = new OpenCommands();
  readonly #onSent = new Set<() => void>();
  #keepAlive: KeepAlive | undefined;
  /** A message that is sent in parts, with which no other one may mix. */
  #parts: Promise<void> | undefined;
  #detach = () => {};

  /** Opens the WebSocket. A redirect, or any other response than an upgrade, is an error. */
  static async open(
    url: URL,
    signal: AbortSignal,
    { network = {}, spare, headers = {}, keepAlive }: SocketOptions = {},
  ): Promise<Socket> {
    const connection = (await spare?.take(url)) as NetSocket | undefined;
    spare?.note(url);
    const upgrade = { headers, keepAlive };
    const open = () =>
      Socket.#open(url, signal, upgrade, () => openConnection(url, routeTo(url, network), { signal }));
    if (!connection) return open();
    return Socket.#open(url, signal, upgrade, async () => connection).catch((error: unknown) => {
      // The server, or a proxy, may have closed the connection because it was idle.
      if (error instanceof ConnectError && error.status !== undefined) throw error;
      return open();
    });
  }

  static async #open(
    url: URL,
    signal: AbortSignal,
    { headers, keepAlive }: Pick<SocketOptions, 'headers' | 'keepAlive'>,
    connect: () => Promise<NetSocket>,
  ): Promise<Socket> {
    const { WebSocket } = await loadWs();
    const connection = await connect().catch((cause: unknown) => {
      signal.throwIfAborted();
      throw failure(cause, cause as Error);
    });
    if (signal.aborted) connection.destroy();
    signal.throwIfAborted();
    const upgrade = {
      createConnection: () => connection,
      headers: { 'user-agent': USER_AGENT, ...headers },
      followRedirects: false,
      perMessageDeflate: false,
      maxPayload: LARGEST_MESSAGE,
      skipUTF8Validation: true,
    };
    const websocket = withNativeRequests(() => new WebSocket(url, upgrade));
    // Listens from the start: a message can arrive together with the response to the upgrade.
    const socket = new Socket(websocket);
    const terminate = () => websocket.terminate();
    signal.addEventListener('abort', terminate);
    try {
      await opened(websocket);
    } finally {
      signal.removeEventListener('abort', terminate);
    }
    if (keepAlive) socket.#keepAlive = new KeepAlive(keepAlive, (command) => socket.#write(command));
    return socket;
  }

  private constructor(websocket: WebSocket) {
    this.#websocket = websocket;
    const heartbeat = new Heartbeat(websocket, () => this.cut('dropped'));
    // One message per task, because libraries resolve promises on which the next message depends.
    websocket.on('message', (data, isBinary) =>
      clock.setImmediate(() => void this.#receive(data as Buffer, isBinary)),
    );
    // A server that violates the protocol may not answer the closing handshake.
    websocket.on('error', () => this.cut('dropped'));
    this.detached = new Promise((resolve) => {
      this.#detach = resolve;
    });
    this.ended = new Promise((resolve) => {
      websocket.once('close', (code, reason) => {
        heartbeat.stop();
        this.#keepAlive?.stop();
        this.#end ??= endOf(code, String(reason));
        const tell = async () => {
          // A process that ends releases its browsers, which is no loss.
          if (endTasks.ending && this.#end !== 'closed-by-us') await endTasks.ending;
          resolve(this.#end!);
          this.#detach();
        };
        // After the last message.
        clock.setImmediate(() => void tell());
      });
    });
  }

  /** Sends a message of the library; after the end it is dropped. */
  send(data: string | Frame, isBinary = false): void {
    this.sendRead(parseMessage(data), isBinary);
  }

  /** @internal The same with a message that is read already. */
  sendRead(command: WireMessage<string | Frame>, isBinary = false): void {
    if (this.isTakenOver) return;
    const tapped = this.tap ? this.tap.command(command) : command;
    if (tapped) this.sendUnseen(tapped, isBinary);
  }

  /** @internal Sends a message of the library that the tap does not see, or has seen. */
  sendUnseen(command: WireMessage<string | Frame>, isBinary = false): void {
    if (this.isTakenOver) return;
    this.#commands.add(command);
    this.#keepAlive?.noteSent();
    this.#websocket.send(command.data as Buffer, { binary: isBinary }, () => {
      for (const call of this.#onSent) call();
    });
  }

  /** Receives each message. Set it before you send the first message. */
  set onMessage(receive: (data: Frame, isBinary: boolean) => unknown) {
    this.deliver = ({ data }, isBinary) => receive(data, isBinary);
  }

  /** Calls a function whenever a message was handed to the network. */
  onSent(call: () => void): void {
    this.#onSent.add(call);
  }

  /** Number of bytes that wait for a slow network or browser. */
  get unsent(): number {
    return this.#websocket.bufferedAmount;
  }

  /** Stops reading, for a receiver that is slower than the browser. */
  pause(): void {
    this.#websocket.pause();
  }

  /** Reads again. */
  resume(): void {
    if (this.#websocket.isPaused) this.#websocket.resume();
  }

  /** The methods of the library's commands that have no response yet, in their order. */
  get pendingCalls(): readonly string[] {
    return this.#commands.ofCallers;
  }

  /** @internal Takes the socket from the library: it receives nothing more, and what it sends or closes has no effect. */
  takeOver(): CdpCarrier {
    this.isTakenOver = true;
    this.tap = undefined;
    this.deliver = () => {};
    this.#detach();
    return {
      ended: this.ended,
      send: (command) => {
        this.#keepAlive?.noteSent();
        this.#write(command);
      },
      sendParts: (parts) => this.#writeParts(parts),
      listen: (onMessage) => void (this.deliver = onMessage),
    };
  }

  #write(command: Message): void {
    if (this.#parts) void this.#parts.then(() => this.#write(command));
    else this.#websocket.send(JSON.stringify(command));
  }

  async #writeParts(parts: Iterable<Uint8Array>): Promise<void> {
    while (this.#parts) await this.#parts;
    const write = async () => {
      let before: Uint8Array | undefined;
      const send = (part: Uint8Array, fin: boolean) =>
        new Promise<void>((resolve, reject) =>
          this.#websocket.send(part, { fin, binary: false }, (error) => (error ? reject(error) : resolve())),
        );
      for (const part of parts) {
        if (before) await send(before, false);
        before = part;
      }
      if (before) await send(before, true);
    };
    this.#parts = write()
      .catch(() => this.cut('dropped'))
      .finally(() => (this.#parts = undefined));
    await this.#parts;
  }

  /** Closes with the closing handshake, or after one second without it. Only the first reason counts. */
  close(reason: SocketEnd): void {
    if (this.#end || this.isTakenOver) return;
    this.#end = reason;
    this.#websocket.close(1000);
    const timer = clock.setTimeout(() => this.#websocket.terminate(), CLOSE_TIMEOUT);
    void this.ended.then(() => clock.clearTimeout(timer));
  }

  /** Closes immediately: no further message reaches the browser. */
  cut(reason: SocketEnd): void {
    this.#end ??= reason;
    this.#websocket.terminate();
  }

  /**
   * Delivers a message. A message that is not what the protocol says ends the socket, because it makes libraries throw an
   * uncaught exception, which would end the process. Other errors, such as those of the callback's own listeners, are not hidden.
   */
  async #receive(data: Uint8Array, isBinary: boolean): Promise<void> {
    if (endTasks.ending) await endTasks.ending;
    let message: WireMessage | undefined;
    try {
      const received = readMessage(data);
      if (this.#keepAlive?.isAnswer(received)) return;
      // A late response is no fault of the browser.
      if (!this.isTakenOver && !this.#commands.take(received)) return;
      const tapped = this.tap ? this.tap.message(received) : received;
      message = tapped instanceof Promise ? await tapped : tapped;
    } catch {
      // No code of the caller runs there: the message can be, for example, too deep to be written again.
      return this.cut('dropped');
    }
    try {
      if (message) await this.deliver(message, isBinary);
    } catch (error) {
      if (!(error instanceof MisfitError) && !parseMessage(data).misfit) throw error;
      this.cut('dropped');
    }
  }
}

/** No server sends 1006: the connection broke. */
function endOf(code: number, reason: string): SocketEnd {
  if (code === 1006) return 'dropped';
  return /expire|inactiv|time-?out|timed out/i.test(reason) ? 'expired' : 'closed-by-service';
}

/** Codes of a connection that was closed by the other side. */
const RESET = /^(ECONNRESET|EPIPE)$/;

function opened(websocket: WebSocket): Promise<void> {
  return new Promise((resolve, reject) => {
    let isRefused = false;
    websocket.once('open', resolve);
    websocket.once('error', (cause) => {
      // The other side restarts: it has closed the connection before it answered.
      const isReset = RESET.test((cause as NodeJS.ErrnoException).code ?? '');
      if (!isRefused) reject(failure(cause, isReset ? cause : undefined));
    });
    websocket.once('unexpected-response', (_request, response) => {
      isRefused = true;
      const { statusCode: status } = response;
      void readBeginning(response).then((body) => {
        const reason = body === '' ? '.' : `: ${sentence(messageOfBody(body))}`;
        const message = `The WebSocket upgrade was refused with status ${status}${reason}`;
        reject(new ConnectError(message, { status }));
        websocket.terminate();
      });
    });
  });
}

function failure(cause: unknown, unreachedBy?: Error): ConnectError {
  return new ConnectError(`The WebSocket failed: ${explain(cause)}.`, { cause, unreachedBy });
}

/** Maximum size in bytes, and time in ms, of the body that is read from a refusal. */
const LONGEST_REFUSAL = 16 * 1024;
const REFUSAL_TIMEOUT = 1000;

/** Reads the body of a refusal as far as it arrives in time. Never rejects. */
async function readBeginning(response: IncomingMessage): Promise<string> {
  let body = '';
  const timer = clock.setTimeout(() => response.destroy(), REFUSAL_TIMEOUT);
  try {
    for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
      body += chunk;
      if (body.length >= LONGEST_REFUSAL) break;
    }
  } catch {
    // What has arrived is enough.
  }
  clock.clearTimeout(timer);
  return body;
}
