import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTask } from 'node:timers/promises';
import { WebSocketServer, type ServerOptions, type WebSocket } from 'ws';
import { HISTOGRAMS } from './histograms.js';
import type { Client } from '../../src/wire/client.js';
import { Wire } from '../../src/wire/wire.js';

/** Opens the connection of a lease, for its library. */
export async function openClient(...how: Parameters<typeof Wire.open>): Promise<Client> {
  return (await Wire.open(...how)).main;
}

/** A WebSocket server that simulates a browser. */
export class PlayedBrowser implements AsyncDisposable {
  readonly url: string;
  /** Received texts, in order. */
  readonly received: string[] = [];
  /** Called with each received text. By default, the library can clean the browser. */
  onText: (text: string, client: WebSocket) => void = (text, client) => {
    const answer = answerOwnCommand(text);
    if (answer !== undefined) client.send(answer);
  };
  /** Called with each connection, and the path of its URL. */
  onConnect: (client: WebSocket, path: string) => void = () => {};
  /** Called with the headers of each upgrade. */
  onUpgrade: (headers: IncomingHttpHeaders) => void = () => {};
  readonly #server: WebSocketServer;
  /** The browser's ends of all connections so far. */
  readonly clients: WebSocket[] = [];
  /** The session is over: new connections are refused. */
  hasEnded = false;

  static async start(options: ServerOptions = {}): Promise<PlayedBrowser> {
    const server = new WebSocketServer({ host: '127.0.0.1', port: 0, skipUTF8Validation: true, ...options });
    await once(server, 'listening');
    return new PlayedBrowser(server);
  }

  private constructor(server: WebSocketServer) {
    this.#server = server;
    this.url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    server.options.verifyClient = (_info, accept) => accept(!this.hasEnded, 404);
    server.on('connection', (client, { url = '', headers }) => {
      this.onUpgrade(headers);
      this.clients.push(client);
      this.onConnect(client, url);
      client.on('error', () => {});
      client.on('message', (data) => {
        this.received.push(String(data));
        this.onText(String(data), client);
      });
    });
  }

  /** Breaks all connections. */
  cut(): void {
    for (const client of this.clients) client.terminate();
  }

  /** Number of connections so far. */
  get dialled(): number {
    return this.clients.length;
  }

  /** Number of open connections. */
  get open(): number {
    return this.#server.clients.size;
  }

  /** Opens a `Wire` to this server. Returns it with the client at its end, and the browser's own end. */
  async connect(): Promise<{ wire: Wire; socket: Client; client: WebSocket }> {
    const wire = await Wire.open(new URL(this.url), new AbortController().signal);
    return { wire, socket: wire.main, client: this.clients.at(-1)! };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    const closed = once(this.#server, 'close');
    this.#server.close();
    await closed;
  }
}

/** Waits for enough iterations of the event loop that everything under way in this process has arrived. */
export async function settle(): Promise<void> {
  for (let task = 0; task < 20; task++) await nextTask();
}

/** Waits until a condition holds, without advancing fake timers as `expect.poll` does. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await nextTask();
}

/** The library's own commands have ids above those of every automation library. */
const FIRST_OWN_ID = 2 ** 30;

/** Answers a command of the library itself over CDP, as a Chromium whose pages and workers have ended. */
export function answerOwnCommand(text: string): string | undefined {
  const id = Number(/^\{"id":(\d+),/.exec(text)?.[1]);
  if (!(id > FIRST_OWN_ID)) return undefined;
  return JSON.stringify({
    id,
    result: {
      browserContextIds: [],
      targetInfos: [],
      targetId: 'page',
      sessionId: 'page',
      histograms: HISTOGRAMS,
      extensions: [],
      cookies: [],
    },
  });
}

interface Command {
  id: number;
  method: string;
  params: { targetId?: string };
  sessionId?: string;
}

/** Answers over CDP as a Chromium with these pages and a worker. An unresponsive page does not answer. */
export function playPages(browser: PlayedBrowser, pages: Record<string, 'answers' | 'unresponsive'>): void {
  const targetInfos = [
    ...Object.keys(pages).map((page) => ({ targetId: page, type: 'page', url: `https://${page}/` })),
    { targetId: 'worker', type: 'worker', url: 'https://worker/' },
  ];
  browser.onText = (text, client) => {
    const { id, method, params, sessionId } = JSON.parse(text) as Command;
    const page = sessionId?.replace('session of ', '');
    if (page && pages[page] === 'unresponsive') return;
    const result = { targetInfos, sessionId: `session of ${params.targetId}` };
    client.send(JSON.stringify({ id, method, result }));
  };
}
