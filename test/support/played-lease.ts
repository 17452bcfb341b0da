import type { LibraryConnection, Connector, ConnectRequest } from '../../src/drivers/connector.js';
import {
  BrowserPool,
  leaseBrowser,
  runOf,
  withPooledBrowser,
  type FailedRun,
  type LeaseFacts,
  type LeaseOptions,
  type Run,
  type RunEvent,
  type RunOptions,
} from '../../src/index.js';
import { FakeService, session } from './fake-service.js';
import { PlayedBrowser } from './played-browser.js';

export interface PlayedHandles {
  page: string;
}

export type PlayedFacts = PlayedHandles & LeaseFacts;

/** Replacements for the steps of the simulated library, which succeed immediately by default. */
type Steps = Partial<LibraryConnection<PlayedHandles>> &
  Partial<Pick<Connector, 'load' | 'refusal'>> & { connect?: (request: ConnectRequest) => unknown };

/** The outcome of a call. */
export interface Ending {
  value?: unknown;
  error?: unknown;
  run: Run<unknown> | FailedRun | undefined;
}

/**
 * A simulated service, browser and automation library, connected by a real WebSocket, to test a lease with each of
 * their faults within milliseconds.
 */
export class PlayedLease implements AsyncDisposable {
  readonly service: FakeService;
  readonly browser: PlayedBrowser;
  readonly pool: BrowserPool;
  readonly events: RunEvent[] = [];
  /** The calls of the simulated library, and the release of the browser, in order. */
  readonly steps: string[] = [];
  readonly requests: ConnectRequest[] = [];
  readonly connector: Connector<PlayedHandles>;

  static async start(steps: Steps = {}): Promise<PlayedLease> {
    return new PlayedLease(await FakeService.start(), await PlayedBrowser.start(), steps);
  }

  private constructor(service: FakeService, browser: PlayedBrowser, { connect, ...steps }: Steps) {
    this.service = service;
    this.browser = browser;
    this.pool = new BrowserPool('test', service.options);
    service.script('acquire', { status: 200, json: this.session() });
    service.script('release', (response) => {
      this.steps.push('release');
      response.writeHead(204).end();
    });
    const { handles = { page: 'a page' }, isConnected = () => true, load, refusal } = steps;
    const step = (name: 'cleanup' | 'disconnect') => async () => {
      this.steps.push(name);
      await steps[name]?.();
    };
    this.connector = {
      library: 'played',
      refusal: refusal ?? (() => undefined),
      load: load ?? (async () => {}),
      connect: async (request) => {
        this.requests.push(request);
        await connect?.(request);
        return { handles, isConnected, cleanup: step('cleanup'), disconnect: step('disconnect') };
      },
    };
  }

  /** A session whose URLs lead to the simulated browser. */
  session(fields: Record<string, unknown> = {}): Record<string, unknown> {
    return session({ cdp_ws_url: this.browser.url, webdriver_ws_url: this.browser.url, ...fields });
  }

  async run(
    fn: (lease: PlayedFacts) => unknown = () => 'value',
    options: RunOptions = {},
    pool: BrowserPool | string = this.pool,
  ): Promise<Ending> {
    let end!: () => void;
    const ended = new Promise<void>((resolve) => (end = resolve));
    const onEvent = (event: RunEvent) => {
      if (event.type === 'ended') end();
      return options.onEvent?.(event);
    };
    return withPooledBrowser(pool, fn, this.#with({ ...options, onEvent })).then(
      (run) => ({ value: run.value, run }),
      async (error: unknown) => {
        // On a busy machine, an aborted call rejects before its end.
        if (options.signal?.aborted) await ended;
        return { error, run: runOf(error) };
      },
    );
  }

  lease(options: LeaseOptions = {}) {
    return this.leaseIn(this.pool, options);
  }

  leaseIn(pool: BrowserPool<object>, options: LeaseOptions = {}) {
    return leaseBrowser(pool as BrowserPool, this.#with(options));
  }

  /** The events of one type. */
  told<Type extends RunEvent['type']>(type: Type): Extract<RunEvent, { type: Type }>[] {
    return this.events.filter((event): event is Extract<RunEvent, { type: Type }> => event.type === type);
  }

  /** The bodies of the release requests. */
  get releases(): unknown[] {
    return this.service.of('release').map(({ body }) => body);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.pool.close();
    await this.service.close();
    await this.browser[Symbol.asyncDispose]();
  }

  #with<Options extends LeaseOptions>(options: Options) {
    const { onEvent } = options;
    return {
      retry: { minTimeout: 1, maxTimeout: 5 },
      ...options,
      connector: this.connector,
      onEvent: (event: RunEvent) => {
        this.events.push(event);
        onEvent?.(event);
      },
    };
  }
}
