import type { WebSocket } from 'ws';
import type { CdpMessage } from '../../net/cdp-connection.js';
import type { PipeClient } from '../browser/cdp-pipe.js';
import type { Chromium } from '../browser/chromium.js';
import { closeWebSocket, GOING_AWAY, SERVER_ERROR } from './websocket.js';

/** Bytes that wait for a client that does not read. Beyond it the client is disconnected. */
const MOST_UNREAD = 512 * 1024 * 1024;

/** The CDP WebSocket of a client: a client of the browser's pipe. */
export class ServedCdpSocket {
  readonly #socket: WebSocket;
  readonly #early: string[] = [];
  #client: PipeClient | undefined;

  constructor(socket: WebSocket, browser: Chromium) {
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

  async #open(browser: Chromium): Promise<void> {
    const client = await browser.pipe.connect({
      onMessage: (message) => this.#receive(message),
      onEnd: () => closeWebSocket(this.#socket, GOING_AWAY, 'The browser has ended.'),
    });
    if (this.#socket.readyState !== this.#socket.OPEN) return client.close();
    this.#client = client;
    for (const command of this.#early.splice(0)) this.#send(command);
  }

  #send(command: string): void {
    if (!this.#client) return void this.#early.push(command);
    try {
      this.#client.send(JSON.parse(command));
    } catch {
      // No JSON, or nested too deeply to be passed on.
      this.#client.send(undefined);
    }
  }

  #receive(message: CdpMessage): void {
    this.#socket.send(JSON.stringify(message), () => {});
    if (this.#socket.bufferedAmount > MOST_UNREAD) this.#socket.terminate();
  }
}
