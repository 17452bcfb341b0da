import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { badLink, jwtOf } from '../pages/page-call.js';
import type { PoolSet } from '../pool/pool-set.js';
import { readDashboard } from './dashboard-state.js';

/** Milliseconds in which changes are gathered: a burst of them is one picture for a person. */
const GATHER = 100;

/** Sends the state of the pools to the dashboards that are open, whenever it may have changed. */
export class DashboardFeed {
  readonly #pools: PoolSet;
  readonly #sockets = new Set<WebSocket>();
  #timer: NodeJS.Timeout | undefined;

  constructor(pools: PoolSet) {
    this.#pools = pools;
  }

  /** Opens the websocket of a dashboard. @throws HttpFault when its jwt is not good. */
  async open(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const { searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1');
    if (!(await this.#pools.tokens.verifyDashboard(jwtOf(searchParams)))) throw badLink();
    const { WebSocketServer } = await import('ws');
    const server = new WebSocketServer({ noServer: true, clientTracking: false, maxPayload: 1024 });
    server.handleUpgrade(request, socket, head, (websocket) => this.#add(websocket));
  }

  /** Something happened in the pools. */
  changed(): void {
    if (this.#sockets.size === 0) return;
    this.#timer ??= setTimeout(() => void this.#send(), GATHER).unref();
  }

  #add(socket: WebSocket): void {
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    socket.on('error', () => socket.terminate());
    void this.#send();
  }

  async #send(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const state = JSON.stringify(await readDashboard(this.#pools));
    for (const socket of this.#sockets) socket.send(state, () => {});
  }
}
