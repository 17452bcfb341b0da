import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer, type RawData } from 'ws';
import { cdp } from '../../src/services.js';
import type { BrowserService } from '../../src/services.js';

/** Changes messages on their way: returns those to send instead. */
export type Change = (text: string) => readonly string[];

const same: Change = (text) => [text];

/** A server between a browser and its clients that changes their messages. */
export class CdpRelay implements AsyncDisposable {
  /** Called for each connection, with its path. */
  changes: (path: string) => { toClient?: Change; toBrowser?: Change } = () => ({});
  readonly port: number;
  readonly #server: WebSocketServer;
  readonly #browsers = new Set<WebSocket>();

  /** @param urlOf The browser's own URL for a path. */
  static async start(urlOf: (path: string) => string): Promise<CdpRelay> {
    const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
    await once(server, 'listening');
    return new CdpRelay(server, urlOf);
  }

  private constructor(server: WebSocketServer, urlOf: (path: string) => string) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    server.on('connection', (client, { url = '/' }) => this.#join(client, url, urlOf(url)));
  }

  /** The browser as a service. */
  service(host = '127.0.0.1'): BrowserService<{ id: string }> {
    return cdp(`ws://${host}:${this.port}/`);
  }

  #join(client: WebSocket, path: string, url: string): void {
    const browser = new WebSocket(url, { perMessageDeflate: false });
    this.#browsers.add(browser);
    client.pause();
    browser.on('open', () => client.resume());
    const pass = (from: WebSocket, to: WebSocket, change: Change) =>
      from.on('message', (data: RawData) => {
        if (to.readyState === to.OPEN) for (const text of change(String(data))) to.send(text);
      });
    const { toClient = same, toBrowser = same } = this.changes(path);
    pass(client, browser, toBrowser);
    pass(browser, client, toClient);
    for (const [one, other] of [
      [client, browser],
      [browser, client],
    ] as const) {
      one.on('error', () => {});
      one.on('close', () => other.terminate());
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of [...this.#server.clients, ...this.#browsers]) one.terminate();
    const closed = once(this.#server, 'close');
    this.#server.close();
    await closed;
  }
}
