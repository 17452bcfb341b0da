import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTask } from 'node:timers/promises';
import { WebSocketServer, type ServerOptions, type WebSocket } from 'ws';
import { Socket } from '../../src/connect/socket.js';

/** A websocket server that stands where the browser would. */
export class PlayedBrowser implements AsyncDisposable {
  readonly url: string;
  /** Texts that came in, in order. */
  readonly received: string[] = [];
  /** Answers a text that came in. */
  onText: (text: string, client: WebSocket) => void = () => {};
  readonly #server: WebSocketServer;
  readonly #clients: WebSocket[] = [];

  static async start(options: ServerOptions = {}): Promise<PlayedBrowser> {
    const server = new WebSocketServer({ host: '127.0.0.1', port: 0, skipUTF8Validation: true, ...options });
    await once(server, 'listening');
    return new PlayedBrowser(server);
  }

  private constructor(server: WebSocketServer) {
    this.#server = server;
    this.url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    server.on('connection', (client) => {
      this.#clients.push(client);
      client.on('error', () => {});
      client.on('message', (data) => {
        this.received.push(String(data));
        this.onText(String(data), client);
      });
    });
  }

  /** Connections made so far. */
  get dialled(): number {
    return this.#clients.length;
  }

  /** Connections that are open now. */
  get open(): number {
    return this.#server.clients.size;
  }

  /** A socket of ours to this server, and the server's end of it. */
  async connect(): Promise<{ socket: Socket; client: WebSocket }> {
    const socket = await Socket.open(this.url, new AbortController().signal);
    return { socket, client: this.#clients.at(-1)! };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.terminate();
    const closed = once(this.#server, 'close');
    this.#server.close();
    await closed;
  }
}

/** As many tasks as it takes for all that is under way in this process to arrive. */
export async function settle(): Promise<void> {
  for (let task = 0; task < 20; task++) await nextTask();
}

/** Waits until something is so. Under faked timers: `expect.poll` would let the faked time pass. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await nextTask();
}

interface Command {
  id: number;
  method: string;
  params: { targetId?: string };
  sessionId?: string;
}

/** Answers as a Chromium with these pages, and a worker, would over CDP. A frozen page does not answer. */
export function playPages(browser: PlayedBrowser, pages: Record<string, 'answers' | 'frozen'>): void {
  const targetInfos = [
    ...Object.keys(pages).map((page) => ({ targetId: page, type: 'page', url: `https://${page}/` })),
    { targetId: 'worker', type: 'worker', url: 'https://worker/' },
  ];
  browser.onText = (text, client) => {
    const { id, method, params, sessionId } = JSON.parse(text) as Command;
    const page = sessionId?.replace('session of ', '');
    if (page && pages[page] === 'frozen') return;
    const result = { targetInfos, sessionId: `session of ${params.targetId}` };
    client.send(JSON.stringify({ id, method, result }));
  };
}
