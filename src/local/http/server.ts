import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { raceTimeout } from '../../shared/abort.js';
import { createLoopbackServer, listenOnLoopback } from '../../net/loopback-server.js';
import { LocalPoolError } from '../../shared/lease-errors.js';
import type { Log } from '../events.js';
import type { Upgrade } from '../../net/accept-websocket.js';
import { closing, faultAnswer, HttpFault, notFound, send, type Answer } from './answer.js';
import type { Pages } from './pages.js';
import { checkSource, checkToken, methodOf, type RouteCall } from './request.js';
import { createAbort } from '../../shared/globals.js';

interface Served {
  readonly token: string;
  readonly routes: readonly HttpRoute[];
  readonly pages: Pages;
  /** Opens a WebSocket, or answers with an error. */
  readonly upgrade: (...received: Upgrade) => Promise<void>;
  readonly log: Log;
}

/** Milliseconds for the last responses while the server closes. */
const LAST_RESPONSES = 1_000;

/** Status in the log when the client closed its connection before the response. */
const CLIENT_GONE = 499;

/** The HTTP server of the local pool. It listens on 127.0.0.1 only. */
export class PoolServer {
  readonly #loopback = createLoopbackServer();
  readonly #server = this.#loopback.server;
  readonly #answering = new Set<Promise<void>>();
  /** `127.0.0.1:<port>`. */
  host = '';
  #closing = false;

  /** @throws LocalPoolError when the port is not available. */
  async listen(port: number): Promise<void> {
    try {
      this.host = await listenOnLoopback(this.#server, port);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const reason = code === 'EADDRINUSE' ? 'the port is in use' : (code ?? String(error));
      const message = `The local pool cannot listen on port ${port} (option port): ${reason}.`;
      throw new LocalPoolError(message, error);
    }
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
      // Afterwards the connection is a client's, or is being closed.
      void served.upgrade(request, socket, head).then(() => this.#loopback.trust(socket));
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
    this.#loopback.cut();
    await closed;
  }

  async #answer(served: Served, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = createAbort();
    response.once('close', () => gone.abort(new Error('The client closed its connection.')));
    response.setHeader('x-request-id', randomUUID());
    // Without the query, which contains the token in the URL of a page.
    const path = (request.url ?? '/').split('?', 1)[0]!;
    const answer = await this.#route(served, request, path, gone.signal).catch(faultAnswer);
    const status = gone.signal.aborted ? CLIENT_GONE : answer.status;
    if (status < 400) this.#loopback.trust(request.socket);
    served.log({ type: 'request', method: request.method ?? '', path, status });
    await send(response, answer);
  }

  async #route(
    { token, routes, pages }: Served,
    request: IncomingMessage,
    path: string,
    signal: AbortSignal,
  ): Promise<Answer> {
    checkSource(request, this.host);
    const page = await pages.answer(request);
    if (page) return page;
    checkToken(request, token);
    if (this.#closing) throw closing();
    return await findRoute(routes, methodOf(request), path)({ request, signal });
  }
}

export type HttpRoute = readonly [
  method: string,
  path: RegExp,
  call: (call: RouteCall) => Answer | Promise<Answer>,
];

/** Finds the route of a request. @throws HttpFault 404 or 405 */
function findRoute(routes: readonly HttpRoute[], method: string | undefined, path: string) {
  const matching = routes.filter(([, pattern]) => pattern.test(path));
  if (matching.length === 0) throw notFound('There is no such path.');
  const found = matching.find(([allowed]) => allowed === method);
  if (!found) {
    const allow = matching.map(([allowed]) => allowed).join(', ');
    throw new HttpFault(405, 'method_not_allowed', `This path allows ${allow}.`, { headers: { allow } });
  }
  const [, pattern, route] = found;
  const [id = '', replayId = ''] = pattern.exec(path)!.slice(1).map(decode);
  return (given: Omit<RouteCall, 'id' | 'replayId'>) => route({ ...given, id, replayId });
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw notFound('The path has an invalid percent-encoding.');
  }
}
