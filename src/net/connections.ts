import { Agent, type ClientRequestArgs } from 'node:http';
import type { Duplex } from 'node:stream';
import { nextTurn } from '../shared/clock.js';
import { exchange, type HttpRequest } from './http.js';
import type { Reachability } from './reachability.js';
import type { OpenResponse } from './response.js';

/** Milliseconds that an unused connection stays open. Many servers close one after five seconds. */
const LONGEST_IDLE = 4000;
/** Milliseconds without traffic after which the system checks whether the other side still exists. */
const PROBE_AFTER = 60_000;

/** The connections to one service. An unused one serves the next request. */
export class Connections {
  /** Resolves when the first connection is open and the requests that waited for it are sent. */
  readonly connected: Promise<void>;
  readonly #agent: OwnAgent;

  /** @param open Opens a connection. The first request calls it. */
  constructor(open: () => Promise<Duplex>, reachability: Reachability) {
    let onConnected!: () => void;
    this.connected = new Promise((resolve) => {
      onConnected = resolve;
    });
    this.#agent = new OwnAgent(async () => {
      try {
        const connection = await open();
        reachability.connected();
        void nextTurn().then(onConnected);
        return connection;
      } catch (error) {
        reachability.failed(error as Error);
        throw error;
      }
    });
  }

  /**
   * Sends a request. It follows no redirect. Rejects if no response arrives.
   *
   * @param pause Milliseconds without data after which the body fails. The default is no limit.
   */
  async send(message: HttpRequest, signal: AbortSignal, pause = 0): Promise<OpenResponse> {
    const response = await exchange(message, { agent: this.#agent, signal });
    if (pause > 0)
      response.setTimeout(pause, () => response.destroy(new Error(`no data for ${pause / 1000} s`)));
    return { statusCode: response.statusCode!, headers: response.headers, body: response };
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Node's own agent opens connections directly to the host. */
class OwnAgent extends Agent {
  readonly #open: () => Promise<Duplex>;

  constructor(open: () => Promise<Duplex>) {
    super({ keepAlive: true, keepAliveMsecs: PROBE_AFTER, timeout: LONGEST_IDLE });
    this.#open = open;
  }

  override createConnection(
    _options: ClientRequestArgs,
    callback?: (error: Error | null, connection: Duplex) => void,
  ): undefined {
    void this.#dial(callback!);
  }

  async #dial(callback: (error: Error | null, connection: Duplex) => void): Promise<void> {
    let connection: Duplex;
    try {
      connection = await this.#open();
    } catch (error) {
      return callback(error as Error, undefined as never);
    }
    callback(null, connection);
  }
}
