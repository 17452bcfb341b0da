import type { RawData, WebSocket } from 'ws';
import type { FirefoxSessions } from '../browser/firefox-sessions.js';
import { closeWebSocket, GOING_AWAY, NORMAL, SERVER_ERROR } from './websocket.js';

/** Bytes that wait for a side that does not read. Beyond it, the client is disconnected. */
const MOST_UNREAD = 512 * 1024 * 1024;

/** The BiDi WebSocket of a client of a browser that speaks BiDi by itself: messages pass unchanged. */
export class NativeBidiSocket {
  readonly #socket: WebSocket;
  readonly #early: [RawData, boolean][] = [];
  #browser: WebSocket | undefined;
  #isClosed = false;

  constructor(socket: WebSocket, sessions: FirefoxSessions) {
    this.#socket = socket;
    socket.on('message', (data, isBinary) => this.#send(data, isBinary));
    socket.once('close', () => this.cut());
    this.#open(sessions).catch(() => closeWebSocket(socket, SERVER_ERROR, 'The browser does not answer.'));
  }

  /** Ends the connection. No further command reaches the browser. */
  cut(): void {
    this.#isClosed = true;
    this.#onCut();
    closeWebSocket(this.#socket, GOING_AWAY, 'The lease has ended.');
  }

  #onCut = () => {};

  async #open(sessions: FirefoxSessions): Promise<void> {
    const browser = await sessions.connect();
    // The session of a client that has left would keep out the next one.
    const end = () => void sessions.disconnect(browser).catch(() => {});
    if (this.#isClosed) return end();
    this.#onCut = () => {
      this.#onCut = () => {};
      end();
    };
    browser.on('message', (data, isBinary) => relay(data, isBinary, this.#socket));
    browser.once('close', (code) => {
      this.#onCut();
      // After `session.end`, the browser closes the connection.
      closeWebSocket(this.#socket, code === NORMAL ? NORMAL : GOING_AWAY, 'The session has ended.');
    });
    this.#browser = browser;
    for (const message of this.#early.splice(0)) this.#send(...message);
  }

  #send(data: RawData, isBinary: boolean): void {
    if (this.#isClosed) return;
    if (this.#browser) relay(data, isBinary, this.#browser);
    else this.#early.push([data, isBinary]);
  }
}

function relay(data: RawData, binary: boolean, to: WebSocket): void {
  if (to.readyState === to.OPEN) to.send(data, { binary }, () => {});
  if (to.bufferedAmount > MOST_UNREAD) to.terminate();
}
