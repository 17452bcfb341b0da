import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { join, type Channel } from '../drivers/relay.js';
import { onAbort } from '../shared/abort.js';
import { clock, startTimer } from '../shared/clock.js';
import { duration } from '../shared/errors.js';
import { loadWs } from '../shared/lazy.js';
import { excessOf, LARGEST_FROM_CLIENT, naming, TOO_LARGE } from '../shared/message-limit.js';
import type { Upstream } from './proxy-endpoint.js';
import { createAbort } from '../shared/globals.js';

/** Maximum number of bytes that a client may send before the upgrade. */
const MOST_EARLY = 64 * 1024;
/** Milliseconds that the closing handshake may take. */
const CLOSE_TIMEOUT = 500;
/** Maximum length of the reason in a close frame, in characters: of one byte each, because the reasons are ours. */
const LONGEST_REASON = 123;
/** Codes of a close frame: the client has closed its browser, or the browser ends. */
export const NORMAL = 1000;
const GOING_AWAY = 1001;

/** A client whose upgrade request is not answered yet. */
export class WaitingClient {
  /** Aborts when the client closes its connection. */
  readonly signal: AbortSignal;
  readonly #connection: Duplex;
  readonly #gone = createAbort();
  readonly #early: Buffer[];
  #bytes = 0;

  /** @param head The beginning of the first frame. */
  constructor(connection: Duplex, head: Buffer) {
    this.#connection = connection;
    this.#early = [head];
    this.signal = this.#gone.signal;
    // The end of a connection is seen only while it is read.
    connection.on('data', this.#onData).once('end', this.#onGone).once('close', this.#onGone);
  }

  /** Answers the upgrade request. Nothing is read from the client until `serveClient`. */
  async accept(request: IncomingMessage): Promise<WebSocket> {
    const { WebSocket, WebSocketServer } = await loadWs();
    this.signal.throwIfAborted();
    const server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: LARGEST_FROM_CLIENT,
      WebSocket: naming(WebSocket, LARGEST_FROM_CLIENT),
      skipUTF8Validation: true,
    });
    this.stop();
    return new Promise((resolve, reject) => {
      // A request that is no valid handshake is refused there.
      this.#connection.once('close', () => reject(GONE));
      server.handleUpgrade(request, this.#connection, Buffer.concat(this.#early), resolve);
    });
  }

  stop(): void {
    this.#connection.off('data', this.#onData).off('end', this.#onGone).off('close', this.#onGone);
    this.#connection.pause();
  }

  readonly #onData = (data: Buffer): void => {
    this.#early.push(data);
    this.#bytes += data.length;
    if (this.#bytes > MOST_EARLY) this.#connection.destroy();
  };

  readonly #onGone = (): void => this.#gone.abort(GONE);
}

const GONE = new Error('The client closed its connection.');

export function closeClient(client: WebSocket, reason: string, code = GOING_AWAY): void {
  if (client.readyState !== client.OPEN) return;
  client.close(code, reason.slice(0, LONGEST_REASON));
  const timer = clock.setTimeout(() => client.terminate(), CLOSE_TIMEOUT);
  client.once('close', () => clock.clearTimeout(timer));
}

interface ServeClientOptions {
  readonly channel: Channel;
  readonly over: AbortSignal;
  readonly idleTimeout: number;
  /** When a person used the browser last (`clock.now()`), during which it is not idle. */
  readonly lastHandoff: () => number;
}

/**
 * Passes the messages of a client to the upstream of its route, until one side ends. A client that is blocked or suspended keeps its browser:
 * it is on this machine, where the end of a program closes its connections.
 *
 * @returns True if the client has sent nothing for `idleTimeout` ms.
 */
export async function serveClient(
  client: WebSocket,
  upstream: Upstream,
  { channel, over, idleTimeout, lastHandoff }: ServeClientOptions,
): Promise<boolean> {
  let isIdle = false;
  let last = clock.now();
  // A close frame with the reason is on its way to a client that exceeds a limit.
  client.on('error', () => {
    if (client.readyState !== client.CLOSING) client.terminate();
  });
  const closed = new Promise((resolve) => client.once('close', resolve));
  client.on('message', () => (last = clock.now()));
  let timer: NodeJS.Timeout | undefined;
  const watch = () => {
    // A page may work on a command for long.
    if (upstream.methodsInFlight.length > 0) last = clock.now();
    const left = idleTimeout - (clock.now() - Math.max(last, lastHandoff()));
    if (left > 0) return void (timer = startTimer(left, watch));
    isIdle = true;
    const what = `No command for ${duration(idleTimeout)}: the browser was released.`;
    return closeClient(client, `${what} Connect again for a new one.`);
  };
  watch();
  join(client, upstream, limited(channel, client));
  client.resume();
  const stopListening = onAbort(over, () => closeClient(client, (over.reason as Error).message));
  // The browser is usually over then, with a better reason.
  void upstream.detached.then(() =>
    clock.setImmediate(() => closeClient(client, 'The connection to the browser ended.')),
  );
  await closed;
  clock.clearTimeout(timer);
  stopListening();
  return isIdle;
}

/** Reads no message whose reading would keep the other clients waiting. */
function limited(channel: Channel, client: WebSocket): Channel {
  return (toClient) => {
    const pass = channel(toClient);
    return (data, isBinary) => {
      const excess = excessOf(data);
      if (excess === undefined) pass(data, isBinary);
      else closeClient(client, excess, TOO_LARGE);
    };
  };
}
