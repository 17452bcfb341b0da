import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { raceTimeout } from '../../shared/abort.js';
import { LocalPoolError } from '../../shared/lease-errors.js';
import type { RequestPlace } from '../chaos/faults.js';
import { callPage } from '../pages/call-page.js';
import {
  deleteBrowser,
  describeBrowser,
  listBrowsers,
  listReplays,
  replayVideo,
  startReplay,
  stopReplay,
} from '../routes/browser-routes.js';
import { acquire, flush, poolRecord, release } from '../routes/pool-routes.js';
import { upgrade, type Served } from '../sockets/upgrade.js';
import { closing, faultAnswer, HttpFault, notFound, send, type Answer } from './answer.js';
import { checkSource, checkToken, methodOf, type RouteCall } from './request.js';

/** Milliseconds for the last responses while the server closes. */
const LAST_RESPONSES = 1_000;

/** Status in the log when the client closed its connection before the response. */
const CLIENT_GONE = 499;

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
    const answer = await this.#route(served, response, path, gone.signal).catch(faultAnswer);
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

type Route = (call: RouteCall) => Answer | Promise<Answer>;

/** All paths of the service. */
const ROUTES: readonly (readonly [name: RequestPlace, method: string, path: RegExp, route: Route])[] = [
  ['acquire', 'POST', /^\/browser_pools\/([^/]+)\/acquire$/, acquire],
  ['release', 'POST', /^\/browser_pools\/([^/]+)\/release$/, release],
  ['flush', 'POST', /^\/browser_pools\/([^/]+)\/flush$/, flush],
  ['pool', 'GET', /^\/browser_pools\/([^/]+)$/, poolRecord],
  ['replays', 'GET', /^\/browsers\/([^/]+)\/replays$/, listReplays],
  ['start-replay', 'POST', /^\/browsers\/([^/]+)\/replays$/, startReplay],
  ['video', 'GET', /^\/browsers\/([^/]+)\/replays\/([^/]+)$/, replayVideo],
  ['stop-replay', 'POST', /^\/browsers\/([^/]+)\/replays\/([^/]+)\/stop$/, stopReplay],
  ['sessions', 'GET', /^\/browsers$/, listBrowsers],
  ['session', 'GET', /^\/browsers\/([^/]+)$/, describeBrowser],
  ['delete', 'DELETE', /^\/browsers\/([^/]+)$/, deleteBrowser],
];

/** Finds the route of a request. @throws HttpFault 404 or 405 */
function findRoute(method: string | undefined, path: string) {
  const matching = ROUTES.filter(([, , pattern]) => pattern.test(path));
  if (matching.length === 0) throw notFound('There is no such path.');
  const found = matching.find(([, allowed]) => allowed === method);
  if (!found) throw wrongMethod(matching.map(([, allowed]) => allowed).join(', '));
  const [name, , pattern, route] = found;
  const [id = '', replayId = ''] = pattern.exec(path)!.slice(1).map(decode);
  const call = async (given: Omit<RouteCall, 'id' | 'replayId'>) => await route({ ...given, id, replayId });
  return { name, call };
}

function wrongMethod(allow: string): HttpFault {
  return new HttpFault(405, 'method_not_allowed', `This path allows ${allow}.`, { headers: { allow } });
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw notFound('The path has an invalid percent-encoding.');
  }
}
