import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { LocalPoolError } from '../../shared/lease-errors.js';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../events.js';
import { callPage } from '../pages/call-page.js';
import type { PoolSet } from '../pool/pool-set.js';
import { faultAnswer, send, type Answer } from './answer.js';
import { checkSource, checkToken } from './guard.js';
import { closing, toFault } from './http-fault.js';
import { callRoute } from './router.js';

/** Milliseconds that responses may take to leave while the server closes. */
const LAST_RESPONSES = 1_000;

/** What the HTTP server stands in front of. */
export interface ServerHost {
  readonly token: string;
  readonly pools: PoolSet;
  readonly log: Log;
  /** Takes over the socket of an upgrade request. */
  readonly onUpgrade: (request: IncomingMessage, socket: Socket, head: Buffer) => void;
}

/** The HTTP side of the local pool, on 127.0.0.1 only. */
export class PoolServer {
  readonly #server: Server = createServer();
  readonly #upgraded = new Set<Duplex>();
  readonly #answering = new Set<Promise<void>>();
  #closing = false;

  /** Starts to listen. */
  async listen(port: number): Promise<void> {
    this.#server.listen(port, '127.0.0.1');
    try {
      await once(this.#server, 'listening');
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const why = code === 'EADDRINUSE' ? 'it is in use' : (code ?? 'it is refused');
      throw new LocalPoolError(`The local pool can't listen on port ${port} (option port): ${why}.`, error);
    }
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Begins to answer. */
  serve(host: ServerHost): void {
    this.#server.on('request', (request, response) => {
      const answering = this.#answer(host, request, response).finally(() =>
        this.#answering.delete(answering),
      );
      this.#answering.add(answering);
    });
    this.#server.on('upgrade', (request, socket: Socket, head) => {
      this.#upgraded.add(socket);
      socket.once('close', () => this.#upgraded.delete(socket));
      // Unheard, a reset would end the process.
      socket.on('error', () => socket.destroy());
      host.onUpgrade(request, socket, head);
    });
  }

  /** From now on every new request is answered with 503. */
  refuse(): void {
    this.#closing = true;
  }

  /** Lets the last responses leave, then cuts what is still open. */
  async close(): Promise<void> {
    const done = new AbortController();
    const answered = Promise.all(this.#answering).then(() => done.abort());
    await Promise.race([answered, sleep(LAST_RESPONSES, undefined, { signal: done.signal }).catch(() => {})]);
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    for (const socket of this.#upgraded) socket.destroy();
    await closed;
  }

  async #answer(host: ServerHost, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.once('close', () => gone.abort(new Error('The client went away.')));
    response.setHeader('x-request-id', randomUUID());
    const path = pathOf(request);
    const answer = await this.#route(host, request, path, gone.signal).catch((error: unknown) =>
      faultAnswer(toFault(error)),
    );
    const status = gone.signal.aborted ? CLIENT_GONE : answer.status;
    host.log({ type: 'request', method: request.method ?? '', path, status });
    await send(response, answer);
  }

  async #route(
    host: ServerHost,
    request: IncomingMessage,
    path: string,
    signal: AbortSignal,
  ): Promise<Answer> {
    checkSource(request, this.port);
    const page = await callPage(host.pools, request);
    if (page) return page;
    checkToken(request, host.token);
    if (this.#closing) throw closing();
    return await callRoute({ request, pools: host.pools, signal }, path);
  }
}

/** In the log only: nobody is there to receive a status. */
const CLIENT_GONE = 499;

/** The path without the query, in which a websocket URL would carry its jwt. */
function pathOf({ url = '/' }: IncomingMessage): string {
  return url.split('?', 1)[0]!;
}
