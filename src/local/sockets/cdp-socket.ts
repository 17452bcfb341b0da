import type { WebSocket } from 'ws';
import { jsonOf } from '../../shared/json.js';
import type { PipeClient } from '../browser/cdp-pipe.js';
import { LargeMessage } from '../browser/large-message.js';
import type { Chromium } from '../browser/chromium.js';
import { closeWebSocket, GOING_AWAY, SERVER_ERROR } from '../../net/accept-websocket.js';
import { receiveFrom, sendTo, slowDown } from './websocket.js';

/** Largest command that is parsed, in bytes: it is in memory several times then. */
const LARGEST_PARSED = 1024 * 1024;

/** The CDP WebSocket of a client: a client of the browser's pipe. */
export class ServedCdpSocket {
  readonly #socket: WebSocket;
  readonly #browser: Chromium;
  #client: PipeClient | undefined;

  constructor(socket: WebSocket, browser: Chromium) {
    this.#socket = socket;
    this.#browser = browser;
    receiveFrom(socket, (data) => this.#send(data as Buffer));
    // Its messages wait until the browser has a session for it.
    socket.pause();
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
    this.#socket.resume();
  }

  #send(data: Buffer): void {
    const large = LargeMessage.read(data);
    // A library writes a large command so that it has to be read only at its ends.
    if (large || data.length > LARGEST_PARSED) this.#client?.send(large?.ends, large);
    // Undefined: no JSON, or nested too deeply to be passed on.
    else this.#client?.send(jsonOf(String(data)));
    slowDown(this.#socket, this.#browser.pipe);
  }
}
