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
import { LARGEST_MESSAGE } from '../shared/json.js';
import { routeTo, type NetworkSettings } from '../shared/network.js';
import { loadWs } from '../shared/lazy.js';
import { ConnectError } from '../shared/lease-errors.js';
import { endTasks } from '../shared/process-state.js';
import { USER_AGENT } from '../shared/version.js';
import type { Frame, SocketEnd } from './forms.js';
import { Heartbeat } from './heartbeat.js';

interface SocketOptions {
  readonly network?: NetworkSettings;
  /** A connection that may be open already, and is remembered for the next WebSocket. */
  readonly spare?: SpareConnection | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Milliseconds that the closing handshake may take. */
const CLOSE_TIMEOUT = 1000;

/**
 * The WebSocket to a leased browser. It follows no redirect, detects a dead connection within 15 s, and does not show the
 * JWT in errors, in contrast to the libraries' own WebSockets (see README.md of this folder).
 */
export class BrowserSocket {
  /** Resolves with the first reason why the socket ended. */
  readonly ended: Promise<SocketEnd>;
  /** Receives each message, in a task of its own. Set it before the first message is sent. */
  onMessage: (data: Buffer, isBinary: boolean) => void = () => {};

  readonly #websocket: WebSocket;
  #end: SocketEnd | undefined;
  readonly #onSent = new Set<() => void>();
  /** A message that is sent in parts, with which no other one may mix. */
  #parts: Promise<void> | undefined;

  /** Opens the WebSocket. A redirect, or any other response than an upgrade, is an error. */
  static async open(
    url: URL,
    signal: AbortSignal,
    { network = {}, spare, headers = {} }: SocketOptions = {},
  ): Promise<BrowserSocket> {
    const connection = (await spare?.take(url)) as NetSocket | undefined;
    spare?.note(url);
    const upgrade = { headers };
    const open = () =>
      BrowserSocket.#open(url, signal, upgrade, () => openConnection(url, routeTo(url, network), { signal }));
    if (!connection) return open();
    return BrowserSocket.#open(url, signal, upgrade, async () => connection).catch((error: unknown) => {
      // The server, or a proxy, may have closed the connection because it was idle.
      if (error instanceof ConnectError && error.status !== undefined) throw error;
      return open();
    });
  }

  static async #open(
    url: URL,
    signal: AbortSignal,
    { headers }: Pick<SocketOptions, 'headers'>,
    connect: () => Promise<NetSocket>,
  ): Promise<BrowserSocket> {
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
    const socket = new BrowserSocket(websocket);
    const terminate = () => websocket.terminate();
    signal.addEventListener('abort', terminate);
    try {
      await opened(websocket);
    } finally {
      signal.removeEventListener('abort', terminate);
    }
    return socket;
  }

  private constructor(websocket: WebSocket) {
    this.#websocket = websocket;
    const heartbeat = new Heartbeat(websocket, () => this.cut('dropped'));
    // One message per task, because libraries resolve promises on which the next message depends.
    websocket.on('message', (data, isBinary) =>
      clock.setImmediate(() => this.onMessage(data as Buffer, isBinary)),
    );
    // A server that violates the protocol may not answer the closing handshake.
    websocket.on('error', () => this.cut('dropped'));
    this.ended = new Promise((resolve) => {
      websocket.once('close', (code, reason) => {
        heartbeat.stop();
        this.#end ??= endOf(code, String(reason));
        const reportEnd = async () => {
          // A process that ends releases its browsers, which is no loss.
          if (endTasks.ending && this.#end !== 'closed-by-us') await endTasks.ending;
          resolve(this.#end!);
        };
        // After the last message.
        clock.setImmediate(() => void reportEnd());
      });
    });
  }

  /** Sends a message; after the end it is dropped. One that is sent in parts comes first. */
  send(data: string | Frame, isBinary = false): void {
    if (this.#parts) return void this.#parts.then(() => this.send(data, isBinary));
    this.#websocket.send(data as Buffer, { binary: isBinary }, () => {
      for (const call of this.#onSent) call();
    });
  }

  /** Calls a function whenever a message was handed to the network. The returned function removes it. */
  onSent(call: () => void): () => void {
    this.#onSent.add(call);
    return () => void this.#onSent.delete(call);
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

  /** Sends a message in parts, each when the one before was handed to the network. Other messages wait. */
  async sendParts(parts: Iterable<Uint8Array>): Promise<void> {
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
    if (this.#end) return;
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
