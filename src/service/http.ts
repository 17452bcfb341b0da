import { Agent, request, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { raceAbort } from '../shared/abort.js';
import { nextTurn } from '../shared/clock.js';
import type { Route } from '../shared/network.js';
import { openConnection } from './connection.js';
import type { Reachability } from './reachability.js';
import { readResponse, type HttpResponse } from './response.js';

/** Milliseconds that an unused connection stays open: less than most servers allow. */
const LONGEST_IDLE = 4000;
/** Some gateways add many headers. Node's limit is 16 KiB. */
const LARGEST_HEADERS = 64 * 1024;

/** @internal The connections to one service. An unused one serves the next request. */
export class Connections extends Agent {
  /** Resolves when the first connection is open and the requests that waited for it are sent. */
  readonly connected: Promise<void>;
  readonly #open: () => Promise<Socket>;
  readonly #reachability: Reachability | undefined;
  #onConnected!: () => void;

  constructor(open: () => Promise<Socket>, reachability?: Reachability) {
    super({ keepAlive: true, timeout: LONGEST_IDLE });
    this.#open = open;
    this.#reachability = reachability;
    this.connected = new Promise((resolve) => {
      this.#onConnected = resolve;
    });
  }

  /** Called by Node for a request without an unused connection. */
  override createConnection(
    _options: object,
    callback?: (error: Error | null, connection: Socket) => void,
  ): undefined {
    const onOpen = (connection: Socket) => {
      this.#reachability?.connected();
      callback!(null, connection);
      void nextTurn().then(this.#onConnected);
    };
    const onError = (error: Error) => {
      this.#reachability?.failed(error);
      callback!(error, undefined as never);
    };
    this.#open().then(onOpen, onError);
  }
}

export interface HttpRequest {
  readonly url: URL;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: object | undefined;
}

/** @internal Sends a request. It follows no redirect. Rejects if no response arrives. */
export function sendRequest(
  { url, method = 'GET', headers, body }: HttpRequest,
  agent: Connections,
  signal?: AbortSignal,
): Promise<IncomingMessage> {
  const text = body && JSON.stringify(body);
  const response = new Promise<IncomingMessage>((resolve, reject) => {
    const options = {
      agent,
      method,
      path: url.pathname + url.search,
      maxHeaderSize: LARGEST_HEADERS,
      headers: {
        host: url.host,
        accept: 'application/json',
        // Node would send a DELETE without the length of its body.
        ...(text && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
        ...headers,
      },
      ...(signal && { signal }),
    };
    request(options, resolve).on('error', reject).end(text);
  });
  // Node ends a request without a connection only when it has one.
  return raceAbort(response, signal);
}

/** Sends a request on a connection of its own, and reads the response. */
export async function sendOnce(
  message: HttpRequest,
  { route, signal }: { route: Route; signal?: AbortSignal | undefined },
): Promise<HttpResponse> {
  const connections = new Connections(() => openConnection(message.url, route, { signal }));
  try {
    return await readResponse(await sendRequest(message, connections, signal));
  } finally {
    connections.destroy();
  }
}
