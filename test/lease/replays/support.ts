import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { afterEach, beforeEach, expect } from 'vitest';
import { WebSocketServer } from 'ws';
import { BrowserPool, runOf, withPooledBrowser, type FailedRun, type RunEvent } from '../../../src/index.js';
import { plainConnector, type PlainHandles } from '../../support/plain-connector.js';
import { expectNoSecrets } from '../../support/collected.js';
import { FakeService, session, type Answer } from '../../support/fake-service.js';

export const SESSION_ID = 'session-1';

export type Options = Omit<Parameters<typeof withPooledBrowser<PlainHandles, unknown>>[2], 'connector'>;

/** The result of a recorded run. */
export interface Recorded {
  value?: unknown;
  error?: unknown;
  run: FailedRun | undefined;
  events: RunEvent[];
  /** The requests in order, without the acquire request. */
  asked: string[];
}

/** A service with WebSockets but without browsers: these tests check which requests it receives, and when. */
export class RecordingBench {
  service!: FakeService;
  pool!: BrowserPool;
  #sockets!: WebSocketServer;

  async start(): Promise<void> {
    this.service = await FakeService.start();
    this.pool = new BrowserPool('test', this.service.options);
    this.#sockets = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    await once(this.#sockets, 'listening');
    const url = `ws://127.0.0.1:${(this.#sockets.address() as AddressInfo).port}/?jwt=canary-jwt-0123456789`;
    const urls = { cdp_ws_url: url, webdriver_ws_url: url };
    this.service.script('acquire', { status: 200, json: session({ session_id: SESSION_ID, ...urls }) });
  }

  async stop(): Promise<void> {
    await this.pool.close();
    for (const client of this.#sockets.clients) client.terminate();
    await new Promise((resolve) => this.#sockets.close(resolve));
    await this.service.close();
  }

  /** Sets the responses to replay lists, one per request. The last one repeats. */
  list(...lists: (Answer | object[])[]): void {
    const answers = lists.map((list) => (Array.isArray(list) ? { status: 200, json: list } : list));
    this.service.script('replays', ...answers);
  }

  async run(options: Options = {}, fn: (signal: AbortSignal) => unknown = () => 'value'): Promise<Recorded> {
    const events: RunEvent[] = [];
    const settings: Options = {
      replays: 'record',
      replaysTimeout: 60_000,
      onEvent: (event) => events.push(event),
      ...options,
    };
    const recorded = await withPooledBrowser(this.pool, ({ signal }) => fn(signal), {
      ...settings,
      connector: plainConnector,
    }).then(
      (run) => ({ value: run.value, run: run as FailedRun }),
      (error: unknown) => ({ error, run: runOf(error) }),
    );
    expectNoSecrets(recorded, ...events);
    return { ...recorded, events, asked: this.asked };
  }

  get asked(): string[] {
    return this.service.requests.map(({ method, path }) => `${method} ${path.split('/').at(-1)}`).slice(1);
  }
}

/** Creates a bench for each test. */
export function useRecordingBench(): RecordingBench {
  const bench = new RecordingBench();
  beforeEach(() => bench.start());
  afterEach(() => bench.stop());
  return bench;
}

export function typesOf({ events }: Recorded): string[] {
  return events.map(({ type }) => type).filter((type) => /record|replays/.test(type));
}

/** Expects the same result as of a run without a recording. */
export function expectUnharmed({ value, run }: Recorded): void {
  expect(value).toBe('value');
  expect(run).toMatchObject({ released: 'reused' });
}
