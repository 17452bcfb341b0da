import type { WebSocket } from 'ws';
import { ConnectError, type LossReason } from '../shared/lease-errors.js';
import { isRecord, parseJson } from '../shared/json.js';
import { loadWs } from '../shared/lazy.js';

/** How a socket ended; `closed-by-us` is the one due end. */
export type SocketEnd = LossReason | 'closed-by-us';

/** A message as it came; not in the types of ws or Node, which a caller's compiler may not have. */
export type Frame = Uint8Array | ArrayBuffer | Uint8Array[];

/** Milliseconds between two pings: silence is noticed after three to four of these, within 10 s. */
const PING_INTERVAL = 2500;
/** A socket that leaves this many pings in a row unanswered is dead, though no packet has said so. */
const MOST_MISSED_PINGS = 3;
/** Milliseconds that the closing handshake may take. */
const CLOSE_TIMEOUT = 1000;
/** What a JSON object begins with. */
const BRACE = 0x7b;
/** Bytes; screenshots and traces of large pages come in one message. */
const LARGEST_MESSAGE = 512 * 1024 * 1024;

/**
 * Our own websocket to a leased browser. The drivers' sockets follow redirects, wait without limit,
 * show the jwt in their errors and don't notice a peer that is gone: see the README of this folder.
 */
export class Socket {
  /** Resolves once, with what ended the socket first. */
  readonly ended: Promise<SocketEnd>;
  /** Receives each message. Set it before the first one is sent. */
  onMessage: (data: Frame, isBinary: boolean) => unknown = () => {};

  readonly #websocket: WebSocket;
  #end: SocketEnd | undefined;
  #heard = true;
  #missedPings = 0;

  /** Opens the websocket; a redirect, or any other answer but an upgrade, is a failure. */
  static async open(url: string, signal: AbortSignal): Promise<Socket> {
    const { WebSocket } = await loadWs();
    signal.throwIfAborted();
    const websocket = new WebSocket(url, {
      followRedirects: false,
      perMessageDeflate: false,
      maxPayload: LARGEST_MESSAGE,
      skipUTF8Validation: true,
      // One message a task: the drivers resolve promises on one message that the next one relies on.
      allowSynchronousEvents: false,
    });
    // Listens from the start: what comes along with the answer to the upgrade would pass unheard.
    const socket = new Socket(websocket);
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
    let heartbeat: NodeJS.Timeout | undefined;
    websocket.once('open', () => {
      heartbeat = setInterval(() => this.#beat(), PING_INTERVAL).unref();
    });
    websocket.on('message', (data, isBinary) => {
      this.#heard = true;
      void this.#receive(data, isBinary);
    });
    // One that breaks the protocol need not answer our closing handshake either.
    websocket.on('error', () => this.cut('dropped'));
    websocket.on('pong', () => {
      this.#heard = true;
    });
    this.ended = new Promise((resolve) => {
      websocket.once('close', (code, reason) => {
        clearInterval(heartbeat);
        this.#end ??= endOf(code, String(reason));
        resolve(this.#end);
      });
    });
  }

  /** What is sent after the end goes nowhere. */
  send(data: string | Frame, isBinary = false): void {
    this.#websocket.send(data as Buffer, { binary: isBinary });
  }

  /** Closes in due form, and soon in any case. The first reason stands. */
  close(reason: SocketEnd): void {
    if (this.#end) return;
    this.#end = reason;
    this.#websocket.close(1000);
    const timer = setTimeout(() => this.#websocket.terminate(), CLOSE_TIMEOUT);
    void this.ended.then(() => clearTimeout(timer));
  }

  /** Cuts the socket: nothing that is still under way reaches the browser. */
  cut(reason: SocketEnd): void {
    this.#end ??= reason;
    this.#websocket.terminate();
  }

  /**
   * Whoever reads what is no message of any protocol here throws, or rejects, and nobody listens: that would end the
   * process. It ends the socket. Other errors, such as of the callback's own listeners, are not ours to hide.
   */
  async #receive(data: Frame, isBinary: boolean): Promise<void> {
    try {
      // Playwright throws where nobody can catch it: it must not see anything but objects.
      if (data instanceof Uint8Array && data[0] !== BRACE) return this.cut('dropped');
      await this.onMessage(data, isBinary);
    } catch (error) {
      if (isMessage(data)) throw error;
      this.cut('dropped');
    }
  }

  /** Counts beats, not time: a process that was itself busy or asleep must not take that for silence. */
  #beat(): void {
    this.#missedPings = this.#heard ? 0 : this.#missedPings + 1;
    this.#heard = false;
    if (this.#missedPings >= MOST_MISSED_PINGS) this.cut('dropped');
    else this.#websocket.ping();
  }
}

function isMessage(data: Frame): boolean {
  try {
    return isRecord(parseJson(String(data)));
  } catch {
    return false;
  }
}

/** 1006 is no code that is sent: the socket just ended. */
function endOf(code: number, reason: string): SocketEnd {
  if (code === 1006) return 'dropped';
  return /expire|inactiv|time-?out|timed out/i.test(reason) ? 'expired' : 'closed-by-service';
}

function opened(websocket: WebSocket): Promise<void> {
  return new Promise((resolve, reject) => {
    websocket.once('open', resolve);
    websocket.once('error', (cause) =>
      reject(new ConnectError(`The websocket failed: ${cause.message}.`, { cause })),
    );
    websocket.once('unexpected-response', (_request, { statusCode }) => {
      const message = `The websocket upgrade was refused with status ${statusCode}.`;
      reject(new ConnectError(message, { status: statusCode }));
      websocket.terminate();
    });
  });
}
