import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer, request as httpRequest } from 'node:http';
import type { IncomingHttpHeaders, RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import { chromium, type Browser, type Page } from 'playwright-core';
import { expect } from 'vitest';
import { WebSocket } from 'ws';
import {
  startLocalPool,
  type LocalPool,
  type LocalPoolEvent,
  type LocalPoolOptions,
} from '../../src/local.js';
import type { AcquireRequest, BrowserSession, PoolRecord } from '../../src/index.js';
import { atEndOfFile } from '../support/worker.js';

export { titled } from '../support/local.js';

/** True on a machine that can show windows without a screen. */
export const hasXvfb = (process.env['PATH'] ?? '')
  .split(delimiter)
  .some((folder) => existsSync(join(folder, 'Xvfb')));

/** A response with its body. */
export interface Reply {
  status: number;
  headers: IncomingHttpHeaders;
  body: ErrorBody;
}

interface ErrorBody {
  code?: string;
  message?: string;
  details?: { code?: string; message?: string }[];
  inner_error?: { code?: string; message?: string };
}

export interface CallOptions {
  body?: unknown;
  /** An undefined header is not sent. */
  headers?: Record<string, string | undefined>;
  signal?: AbortSignal | undefined;
}

type EventOf<Type> = Extract<LocalPoolEvent, { type: Type }>;

/** A client of the local pool's API that uses none of our client's code. */
export class Api {
  readonly pool: LocalPool;
  /** The events of the pool so far. */
  readonly events: LocalPoolEvent[];

  constructor(pool: LocalPool, events: LocalPoolEvent[] = []) {
    this.pool = pool;
    this.events = events;
  }

  eventsOf<Type extends LocalPoolEvent['type']>(type: Type): EventOf<Type>[] {
    return this.events.filter((event): event is EventOf<Type> => event.type === type);
  }

  /** Sends a request. Unlike `fetch`, it can send forged headers. */
  call(method: string, path: string, { body, headers = {}, signal }: CallOptions = {}): Promise<Reply> {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const { port } = new URL(this.pool.baseUrl);
    const given = Object.entries({ authorization: `Bearer ${this.pool.token}`, ...headers });
    const sent = Object.fromEntries(given.filter(([, value]) => value !== undefined));
    return new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port, method, path, headers: sent, agent: false };
      const request = httpRequest({ ...options, ...(signal && { signal }) }, (response) => {
        let received = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (received += chunk));
        response.once('end', () => {
          const isJson = received !== '' && response.headers['content-type']?.includes('json');
          const body = (isJson ? JSON.parse(received) : {}) as ErrorBody;
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
        });
      });
      request.once('error', reject);
      request.end(text);
    });
  }

  /** Sends a GET without the access token. */
  async status(path: string, headers: CallOptions['headers'] = {}): Promise<number> {
    return (await this.call('GET', path, { headers: { authorization: undefined, ...headers } })).status;
  }

  acquire(body: AcquireRequest = {}, pool = 'default', signal?: AbortSignal): Promise<Reply> {
    return this.call('POST', `/browser_pools/${pool}/acquire`, { body, signal });
  }

  /** Acquires a browser. Throws when the response is not a session. */
  async lease(body: AcquireRequest = {}, pool = 'default'): Promise<BrowserSession> {
    const { status, body: answer } = await this.acquire({ acquire_timeout_seconds: 60, ...body }, pool);
    if (status !== 200) throw new Error(`${status} ${JSON.stringify(answer)}`);
    return answer as unknown as BrowserSession;
  }

  async release(session: BrowserSession, reuse?: boolean): Promise<number> {
    const body = { session_id: session.session_id, ...(reuse !== undefined && { reuse }) };
    return (await this.call('POST', `/browser_pools/${session.pool!.name!}/release`, { body })).status;
  }

  async record(pool = 'default'): Promise<PoolRecord> {
    return (await this.call('GET', `/browser_pools/${pool}`)).body as unknown as PoolRecord;
  }
}

/** Starts a pool that closes after the test file, and collects its events. */
export async function startApi(options: LocalPoolOptions = {}): Promise<Api> {
  const events: LocalPoolEvent[] = [];
  const onLog = (event: LocalPoolEvent) => {
    events.push(event);
    options.onLog?.(event);
  };
  const pool = await startLocalPool({ ...options, onLog });
  atEndOfFile(() => pool.close());
  return new Api(pool, events);
}

/** Starts a server that closes after the test file, and returns its origin. By default it never answers. */
export async function serve(answer: RequestListener = () => {}): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEndOfFile(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Serves HTML by path, and answers other paths with 404. */
export function serveSite(html: Readonly<Record<string, string>>): Promise<string> {
  return serve(({ url }, response) => {
    response.writeHead(html[url!] === undefined ? 404 : 200, { 'content-type': 'text/html' });
    response.end(html[url!] ?? 'Not found');
  });
}

/** Connects Playwright to a leased browser while the function runs. */
export async function drive<Value>(
  { cdp_ws_url }: BrowserSession,
  fn: (page: Page, browser: Browser) => Promise<Value>,
): Promise<Value> {
  const browser = await chromium.connectOverCDP(cdp_ws_url, { timeout: 150_000 });
  try {
    return await fn(browser.contexts()[0]!.pages()[0]!, browser);
  } finally {
    await browser.close();
  }
}

/** Waits until `holds` returns true, or throws after `limit` ms. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  limit = 45_000,
): Promise<void> {
  const end = performance.now() + limit;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`After ${limit} ms it is not true that ${what}.`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export interface TriedSocket {
  /** The status is the one of the refusal. */
  outcome: 'open' | number;
  socket: WebSocket;
  body: ErrorBody;
}

export async function tryWebSocket(url: string, headers: Record<string, string> = {}): Promise<TriedSocket> {
  const socket = new WebSocket(url, { headers });
  return await new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.once('close', () => reject(new Error('The WebSocket closed before it opened.')));
    socket.once('open', () => resolve({ outcome: 'open', socket, body: {} }));
    socket.once('unexpected-response', (_request, response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.once('end', () => {
        resolve({ outcome: response.statusCode ?? 0, socket, body: JSON.parse(text) as ErrorBody });
      });
    });
  });
}

/** Leases a browser and opens its WebSocket. On a busy machine, a lease with a short timeout may expire before. */
export async function leaseConnected(
  api: Api,
  pool: string,
  url: 'cdp_ws_url' | 'webdriver_ws_url' = 'cdp_ws_url',
): Promise<{ session: BrowserSession; socket: WebSocket }> {
  for (;;) {
    const session = await api.lease({}, pool);
    const { outcome, socket } = await tryWebSocket(session[url]);
    if (outcome === 'open') return { session, socket };
    expect(outcome).toBe(401);
  }
}

/** Sends a message and returns the next message from the server. */
export async function ask(socket: WebSocket, message: object | string): Promise<Record<string, unknown>> {
  const answer = new Promise<Buffer>((resolve, reject) => {
    const onClose = () => reject(new Error('The WebSocket closed before it answered.'));
    socket.once('close', onClose);
    socket.once('message', (data: Buffer) => {
      socket.off('close', onClose);
      resolve(data);
    });
    const text = typeof message === 'string' ? message : JSON.stringify(message);
    socket.send(text, (error) => error && reject(error));
  });
  return JSON.parse((await answer).toString()) as Record<string, unknown>;
}

export async function closed(socket: WebSocket): Promise<void> {
  if (socket.readyState !== WebSocket.CLOSED) await once(socket, 'close');
}
