import type { WebSocket } from 'ws';
import type { CdpBrowser, CdpClient } from '../browser/cdp-pipe.js';
import type { OpenSocket } from '../pool/lease.js';
import { acceptWebSockets, closeWebSocket, GOING_AWAY, SERVER_ERROR } from './websocket.js';

/** Largest command of a client, in bytes. */
const MOST_BYTES = 256 * 1024 * 1024;
/** Bytes that wait for a client that does not read. Beyond it the client is disconnected. */
const MOST_UNREAD = 512 * 1024 * 1024;

/** Opens the CDP WebSockets of leases. */
export function prepareCdp(): OpenSocket {
  return acceptWebSockets(MOST_BYTES, (websocket, { browser: { chromium } }) => {
    const opened = new CdpSocket(websocket, chromium);
    return () => opened.cut();
  });
}

/** The CDP WebSocket of a client: a client of the browser's pipe. */
class CdpSocket {
  readonly #socket: WebSocket;
  readonly #early: string[] = [];
  #client: CdpClient | undefined;

  constructor(socket: WebSocket, browser: CdpBrowser) {
    this.#socket = socket;
    socket.on('message', (data: Buffer) => this.#send(data.toString()));
    socket.once('close', () => this.#client?.close());
    this.#open(browser).catch(() => closeWebSocket(socket, SERVER_ERROR, 'The browser does not answer.'));
  }

  /** Ends the connection. No further command reaches the browser. */
  cut(): void {
    this.#client?.close();
    this.#socket.terminate();
  }

  async #open(browser: CdpBrowser): Promise<void> {
    const client = await browser.connect({
      onMessage: (message) => this.#receive(message),
      onEnd: () => closeWebSocket(this.#socket, GOING_AWAY, 'The browser has ended.'),
    });
    if (this.#socket.readyState !== this.#socket.OPEN) return client.close();
    this.#client = client;
    for (const command of this.#early.splice(0)) client.send(command);
  }

  #send(command: string): void {
    if (this.#client) this.#client.send(command);
    else this.#early.push(command);
  }

  #receive(message: Buffer): void {
    this.#socket.send(message, { binary: false }, () => {});
    if (this.#socket.bufferedAmount > MOST_UNREAD) this.#socket.terminate();
  }
}
