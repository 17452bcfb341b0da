import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WebSocket } from 'ws';
import {
  BrowserPool,
  mapPooledBrowsers,
  type Connector,
  type MapOptions,
  type Outcome,
  type Outcomes,
  type TaskCallback,
} from '../../src/index.js';
import { FakeService, reply, session } from '../support/fake-service.js';
import { PlayedBrowser } from '../support/played-browser.js';

/** A page of the fake automation library of these tests. */
export interface FakePage {
  id: number;
  isClosed: boolean;
  /** Of its context. */
  options?: object | undefined;
}

export interface Handles {
  page: FakePage;
}

/**
 * A service with `size` browsers over real HTTP and real WebSockets, and an automation library whose pages exist only
 * in memory. Tests a job and its leases without the time that browsers need.
 */
export class MapBench implements AsyncDisposable {
  readonly service: FakeService;
  readonly pool: BrowserPool;
  readonly pages: FakePage[] = [];
  /** Session ids in the order of their leases. */
  readonly granted: string[] = [];
  /** How each session was released. */
  readonly released = new Map<string, 'reused' | 'destroyed'>();
  /** Maximum number of browsers that were leased at once. */
  mostLeased = 0;
  /** Replace this function to make pages fail to open. */
  openPage: (contextOptions?: object) => Promise<void> = async () => {};
  /** Time until the browser answers a ping, in ms. */
  roundTrip = 0;
  /** Replace this function to make pages slow to reset. */
  resetPage: () => Promise<void> = async () => {};

  /** Number of browsers of the service. */
  size: number;
  /** How often the service looks for a browser, each 20 ms, before it answers that it has none. */
  mostTries = 50;

  readonly #browser: PlayedBrowser;
  readonly #open = new Map<string, WebSocket>();

  static async start(size = 100): Promise<MapBench> {
    return new MapBench(await FakeService.start(), await PlayedBrowser.start({ autoPong: false }), size);
  }

  private constructor(service: FakeService, browser: PlayedBrowser, size: number) {
    this.service = service;
    this.pool = new BrowserPool('pool', service.options);
    this.size = size;
    this.#browser = browser;
    browser.onConnect = (client, path) => {
      this.#open.set(path.slice(1), client);
      client.on('ping', (data) => setTimeout(() => client.pong(data), this.roundTrip));
    };
    service.script('acquire', (response) => this.#acquire(response));
    service.script('release', (response, { body }) => {
      this.released.set(body!['session_id'] as string, body!['reuse'] ? 'reused' : 'destroyed');
      reply(response, { status: 204 });
    });
  }

  get leased(): number {
    return this.granted.length - this.released.size;
  }

  /** Ends the connection to the browser. */
  lose(sessionId: string): void {
    this.#open.get(sessionId)!.terminate();
  }

  /** Lets the automation library accept any options of a context. */
  acceptContexts(): void {
    this.connector = { ...this.connector, checkContext: () => {} };
  }

  map<Input, Value>(
    inputs: Iterable<Input> | AsyncIterable<Input>,
    fn: TaskCallback<Handles, Input, Value>,
    options: MapOptions = {},
  ): Outcomes<Input, Value> {
    const retry = { minTimeout: 5, maxTimeout: 20 };
    return mapPooledBrowsers(this.pool, inputs, fn, {
      retry,
      replays: 'off',
      connectAttempts: 1,
      pollTimeout: 1000,
      ...options,
      connector: this.connector,
    });
  }

  /** Runs a job to its end, and returns its outcomes. */
  run<Input, Value>(
    inputs: Iterable<Input> | AsyncIterable<Input>,
    fn: TaskCallback<Handles, Input, Value>,
    options?: MapOptions,
  ): Promise<Outcome<Input, Value>[]> {
    return collect(this.map(inputs, fn, options));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.pool.close();
    await this.service.close();
    await this.#browser[Symbol.asyncDispose]();
  }

  async #acquire(response: ServerResponse): Promise<void> {
    const isGone = () => response.destroyed;
    // The request waits while no browser is available.
    for (let tries = 0; this.leased >= this.size && tries < this.mostTries && !isGone(); tries++)
      await sleep(20);
    if (isGone()) return;
    if (this.leased >= this.size) return reply(response, { status: 204 });
    const sessionId = `s${this.granted.length + 1}`;
    this.granted.push(sessionId);
    this.mostLeased = Math.max(this.mostLeased, this.leased);
    reply(response, {
      status: 200,
      json: session({ session_id: sessionId, cdp_ws_url: this.#browser.url + sessionId }),
    });
  }

  /** The automation library of this bench, for calls that `map` does not make. */
  connector: Connector<Handles> = {
    library: 'fake',
    refusal: () => undefined,
    load: async () => {},
    connect: async ({ socket }) => {
      let isConnected = true;
      void socket.ended.then(() => (isConnected = false));
      return {
        handles: { page: this.#newPage() },
        openWorkspace: async (isolation, contextOptions) => {
          await this.openPage(contextOptions);
          const page = Object.assign(this.#newPage(), { options: contextOptions });
          return {
            handles: { page },
            reset: async () => {
              await this.resetPage();
              return isolation !== 'context';
            },
            close: async () => void (page.isClosed = true),
          };
        },
        isConnected: () => isConnected,
        cleanup: async () => {},
        disconnect: async () => socket.close('closed-by-us'),
      };
    },
  };

  #newPage(): FakePage {
    const page = { id: this.pages.length, isClosed: false };
    this.pages.push(page);
    return page;
  }
}

export async function collect<Input, Value>(
  outcomes: AsyncIterable<Outcome<Input, Value>>,
): Promise<Outcome<Input, Value>[]> {
  const all: Outcome<Input, Value>[] = [];
  for await (const outcome of outcomes) all.push(outcome);
  return all;
}

/** Returns the values of the outcomes. A failed task throws. */
export async function valuesOf<Input, Value>(
  outcomes: AsyncIterable<Outcome<Input, Value>>,
): Promise<Value[]> {
  return (await collect(outcomes)).map((outcome) => {
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  });
}

export function range(length: number): number[] {
  return Array.from({ length }, (_, index) => index);
}

/** Inputs that count how many of them were pulled, and how often they were closed. */
export function counted(length: number) {
  const state = { pulled: 0, closed: 0 };
  async function* inputs() {
    try {
      for (let input = 0; input < length; input++) {
        state.pulled++;
        yield input;
      }
    } finally {
      state.closed++;
    }
  }
  return Object.assign(state, { inputs: inputs() });
}

/** A promise that resolves when `open` is called. */
export function gate(): { promise: Promise<void>; open: () => void } {
  let open = () => {};
  const promise = new Promise<void>((resolve) => void (open = resolve));
  return { promise, open };
}
