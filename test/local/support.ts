import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, expect } from 'vitest';
import { WebSocket } from 'ws';
import { startLocalPool, type LocalPool, type LocalPoolOptions } from '../../src/local.js';
import type { AcquireRequest } from '../../src/service/pool-options.js';
import type { BrowserSession, PoolRecord } from '../../src/service/wire.js';

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

/** A client of the local pool's API that uses none of our client's code. */
export class Api {
  readonly pool: LocalPool;

  constructor(pool: LocalPool) {
    this.pool = pool;
  }

  /** Sends a request. Unlike `fetch`, it can send forged headers. */
  call(method: string, path: string, { body, headers = {}, signal }: CallOptions = {}): Promise<Reply> {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const { port } = new URL(this.pool.baseUrl);
    const authorization = `Bearer ${this.pool.token}`;
    return new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port, method, path, headers: { authorization, ...headers } };
      const request = httpRequest({ ...options, agent: false, ...(signal && { signal }) }, (response) => {
        let received = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (received += chunk));
        response.once('end', () => {
          const body = (received === '' ? {} : JSON.parse(received)) as ErrorBody;
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
        });
      });
      request.once('error', reject);
      request.end(text);
    });
  }

  /** Sends a GET and ignores the body. */
  status(path: string, headers: Record<string, string> = {}): Promise<number> {
    const { port } = new URL(this.pool.baseUrl);
    return new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port, path, headers, agent: false };
      const request = httpRequest(options, (response) => {
        response.resume().once('end', () => resolve(response.statusCode ?? 0));
      });
      request.once('error', reject).end();
    });
  }

  acquire(body: AcquireRequest = {}, pool = 'default', signal?: AbortSignal): Promise<Reply> {
    return this.call('POST', `/browser_pools/${pool}/acquire`, { body, ...(signal && { signal }) });
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

export interface CallOptions {
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

const started: LocalPool[] = [];
afterAll(() => Promise.all(started.map((pool) => pool.close())));

/** Starts a pool that closes after the test file. */
export async function startApi(options?: LocalPoolOptions): Promise<Api> {
  const pool = await startLocalPool(options);
  started.push(pool);
  return new Api(pool);
}

/** The URL of a server that never answers. It closes after the test file. */
export async function silentUrl(): Promise<string> {
  const server = createServer(() => {}).listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterSilence.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

const afterSilence: (() => void)[] = [];
afterAll(() => afterSilence.forEach((close) => close()));

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

/** Opens a WebSocket. The outcome is `open` or the status of the refusal. */
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

export interface TriedSocket {
  outcome: 'open' | number;
  socket: WebSocket;
  body: ErrorBody;
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

export function closed(socket: WebSocket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.readyState === WebSocket.CLOSED) resolve();
    else socket.once('close', () => resolve());
  });
}

/** The URL of a page with this title. */
export function titled(title: string): string {
  return `data:text/html,<title>${title}</title>`;
}
