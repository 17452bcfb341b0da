import type { WebSocket } from 'ws';
import { LARGEST_OF_POOL } from '../../shared/message-limit.js';
import type { PipeClient } from '../browser/cdp-pipe.js';
import type { Chromium } from '../browser/chromium.js';
import { closeWebSocket, GOING_AWAY, receiveFrom, sendTo, SERVER_ERROR, slowDown } from './websocket.js';

/** The CDP WebSocket of a client: a client of the browser's pipe. */
export class ServedCdpSocket {
  readonly #socket: WebSocket;
  readonly #browser: Chromium;
  readonly #early: string[] = [];
  #earlySize = 0;
  #client: PipeClient | undefined;

  constructor(socket: WebSocket, browser: Chromium) {
    this.#socket = socket;
    this.#browser = browser;
    receiveFrom(socket, (data) => this.#send(String(data)));
    socket.once('close', () => this.#client?.close());
    this.#open().catch(() => closeWebSocket(socket, SERVER_ERROR, 'The browser does not answer.'));
  }

  /** Ends the connection. No further command reaches the browser. */
  cut(): void {
    this.#client?.close();
    this.#socket.terminate();
  }

  async #open(): Promise<void> {
    const client = await this.#browser.pipe.connect({
      onMessage: (message) => sendTo(this.#socket, JSON.stringify(message)),
      onLarge: (json) => sendTo(this.#socket, json),
      onEnd: () => closeWebSocket(this.#socket, GOING_AWAY, 'The browser has ended.'),
    });
    if (this.#socket.readyState !== this.#socket.OPEN) return client.close();
    this.#client = client;
    for (const command of this.#early.splice(0)) this.#send(command);
  }

  #send(command: string): void {
    if (!this.#client) return this.#keep(command);
    try {
      this.#client.send(JSON.parse(command));
    } catch {
      // No JSON, or nested too deeply to be passed on.
      this.#client.send(undefined);
    }
    slowDown(this.#socket, this.#browser.pipe);
  }

  /** Keeps a message until the browser has a session for it. */
  #keep(command: string): void {
    this.#early.push(command);
    this.#earlySize += command.length;
    if (this.#earlySize > LARGEST_OF_POOL) this.#socket.terminate();
  }
}
