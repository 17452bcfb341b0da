import { once } from 'node:events';
import type { WebSocket } from 'ws';
import type { ClientSocket } from '../../drivers/socket.js';
import { LARGEST_MESSAGE } from '../../shared/json.js';
import { loadWs } from '../../shared/lazy.js';
import type { Upstream } from '../proxy-endpoint.js';

/** The connection to the server side of Playwright. */
export class ServerSocket implements Upstream {
  readonly detached: Promise<void>;
  /** Receives each message. */
  onText: (text: string) => void = () => {};
  readonly #websocket: WebSocket;
  readonly #browser: ClientSocket;
  readonly #onSent = new Set<() => void>();

  /** @param url Contains the secret of the server. @param browser The connection of the server to its browser. */
  static async open(url: string, browser: ClientSocket, signal: AbortSignal): Promise<ServerSocket> {
    const { WebSocket } = await loadWs();
    const websocket = new WebSocket(url, { perMessageDeflate: false, maxPayload: LARGEST_MESSAGE });
    try {
      await once(websocket, 'open', { signal });
    } catch (error) {
      websocket.on('error', () => {});
      websocket.terminate();
      throw error;
    }
    return new ServerSocket(websocket, browser);
  }

  private constructor(websocket: WebSocket, browser: ClientSocket) {
    this.#websocket = websocket;
    this.#browser = browser;
    this.detached = new Promise((resolve) => websocket.once('close', () => resolve()));
    websocket.on('error', () => websocket.terminate());
    websocket.on('message', (data) => this.onText(String(data)));
  }

  get methodsInFlight(): readonly string[] {
    return this.#browser.methodsInFlight;
  }

  get unsent(): number {
    return this.#websocket.bufferedAmount;
  }

  send(text: string): void {
    if (this.#websocket.readyState !== this.#websocket.OPEN) return;
    this.#websocket.send(text, () => {
      for (const call of this.#onSent) call();
    });
  }

  onSent(call: () => void): void {
    this.#onSent.add(call);
  }

  pause(): void {
    this.#websocket.pause();
  }

  resume(): void {
    if (this.#websocket.isPaused) this.#websocket.resume();
  }

  cut(): void {
    this.#websocket.terminate();
  }
}
