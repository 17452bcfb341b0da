import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { raceTimeout } from '../../shared/abort.js';
import { LocalPoolError } from '../../shared/lease-errors.js';
import type { DashboardFeed } from '../dashboard/dashboard-feed.js';
import { callPage } from '../pages/call-page.js';
import type { PoolSet } from '../pool/pool-set.js';
import { upgrade } from '../sockets/upgrade.js';
import { closing, faultAnswer, send, toFault, type Answer } from './answer.js';
import { checkSource, checkToken, methodOf } from './request.js';
import { findRoute } from './router.js';

/** Milliseconds for the last responses while the server closes. */
const LAST_RESPONSES = 1_000;

/** Status in the log when the client closed its connection before the response. */
const CLIENT_GONE = 499;

/** What the server serves. */
interface Served {
  readonly pools: PoolSet;
  readonly dashboard: DashboardFeed;
}

/** The HTTP server of the local pool. It listens on 127.0.0.1 only. */
export class PoolServer {
  readonly #server: Server = createServer();
  readonly #upgraded = new Set<Socket>();
  readonly #answering = new Set<Promise<void>>();
  #closing = false;

  /** @throws LocalPoolError when the port is not available. */
  async listen(port: number): Promise<void> {
    this.#server.listen(port, '127.0.0.1');
    try {
      await once(this.#server, 'listening');
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const reason = code === 'EADDRINUSE' ? 'the port is in use' : (code ?? String(error));
      const message = `The local pool cannot listen on port ${port} (option port): ${reason}.`;
      throw new LocalPoolError(message, error);
    }
  }

  /** `127.0.0.1:<port>`. */
  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Starts to answer requests. */
  serve(served: Served): void {
    this.#server.on('request', (request, response) => {
      const answering = this.#answer(served, request, response).finally(() =>
        this.#answering.delete(answering),
      );
      this.#answering.add(answering);
    });
    this.#server.on('upgrade', (request, socket: Socket, head) => {
      this.#upgraded.add(socket);
      socket.once('close', () => this.#upgraded.delete(socket));
      // Without a listener, a reset would end this process.
      socket.on('error', () => socket.destroy());
      void upgrade(served, request, socket, head);
    });
  }

  /** Answers every new request with 503. */
  refuse(): void {
    this.#closing = true;
  }

  /** Waits for the last responses, then closes all connections. */
  async close(): Promise<void> {
    const answered = () => Promise.all(this.#answering);
    await raceTimeout(LAST_RESPONSES, answered, () => new Error('A response is too slow.')).catch(() => {});
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    for (const socket of this.#upgraded) socket.destroy();
    await closed;
  }

  async #answer(served: Served, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.once('close', () => gone.abort(new Error('The client closed its connection.')));
    response.setHeader('x-request-id', randomUUID());
    // Without the query, which contains the token in the URL of a page.
    const path = (request.url ?? '/').split('?', 1)[0]!;
    const answer = await this.#route(served, response, path, gone.signal).catch((error: unknown) =>
      faultAnswer(toFault(error)),
    );
    const status = gone.signal.aborted || !answer ? CLIENT_GONE : answer.status;
    served.pools.log({ type: 'request', method: request.method ?? '', path, status });
    if (answer) await send(response, answer);
  }

  /** @returns Undefined when the option `chaos` suppresses the answer. */
  async #route(
    { pools, dashboard }: Served,
    response: ServerResponse,
    path: string,
    signal: AbortSignal,
  ): Promise<Answer | undefined> {
    const request = response.req;
    checkSource(request, pools.host);
    const page = await callPage(pools, dashboard.shown, request);
    if (page) return page;
    checkToken(request, pools.token);
    if (this.#closing) throw closing();
    const { name, call } = findRoute(methodOf(request), path);
    return await pools.chaos.answer(name, response, () => call({ request, pools, signal }));
  }
}
