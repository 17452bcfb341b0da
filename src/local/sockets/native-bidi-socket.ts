import type { RawData, WebSocket } from 'ws';
import type { FirefoxSessions } from '../browser/firefox-sessions.js';
import { closeWebSocket, GOING_AWAY, NORMAL, SERVER_ERROR } from '../../net/accept-websocket.js';
import { receiveFrom, sendTo } from './websocket.js';

/** The BiDi WebSocket of a client of a browser that speaks BiDi by itself: messages pass unchanged. */
export class NativeBidiSocket {
  readonly #socket: WebSocket;
  readonly #sessions: FirefoxSessions;
  #browser: WebSocket | undefined;
  #isClosed = false;
  #hasBegun = false;
  #queue: Promise<void> = Promise.resolve();

  constructor(socket: WebSocket, sessions: FirefoxSessions) {
    this.#socket = socket;
    this.#sessions = sessions;
    this.#enqueue(() => this.#open());
    receiveFrom(socket, (data, isBinary) => this.#enqueue(() => this.#send(data, isBinary)));
    socket.once('close', () => this.cut());
  }

  /** Ends the connection. No further command reaches the browser. */
  cut(): void {
    this.#isClosed = true;
    this.#onCut();
    closeWebSocket(this.#socket, GOING_AWAY, 'The lease has ended.');
  }

  #onCut = () => {};

  /** Messages keep their order: they wait until the connection, and then the session, can be opened. */
  #enqueue(step: () => void | Promise<void>): void {
    this.#queue = this.#queue
      .then(step)
      .catch(() => closeWebSocket(this.#socket, SERVER_ERROR, 'The browser does not answer.'));
  }

  async #open(): Promise<void> {
    const browser = await this.#sessions.connect();
    // The session of a client that has left would keep out the next one.
    const end = () => void this.#sessions.disconnect(browser).catch(() => {});
    if (this.#isClosed) return end();
    this.#onCut = () => {
      this.#onCut = () => {};
      end();
    };
    browser.on('message', (data, isBinary) => sendTo(this.#socket, data, isBinary));
    browser.once('close', (code) => {
      this.#onCut();
      // After `session.end`, the browser closes the connection.
      closeWebSocket(this.#socket, code === NORMAL ? NORMAL : GOING_AWAY, 'The session has ended.');
    });
    this.#browser = browser;
  }

  async #send(data: RawData, isBinary: boolean): Promise<void> {
    const browser = this.#browser;
    if (this.#isClosed || !browser) return;
    if (!this.#hasBegun && String(data).includes('"session.new"')) {
      this.#hasBegun = true;
      await this.#sessions.begin(browser);
    }
    if (!this.#isClosed) sendTo(browser, data, isBinary);
  }
}
