import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LocalPool } from '../../src/local.js';

/** How often each fault happens, from 0 to 1. At most one happens to one request, WebSocket or lease. */
export interface FaultRates {
  readonly request: {
    /** Answered with 429, 500, 502, 503 or 504, and not processed. */
    readonly status: number;
    /** Processed, and answered up to 3 s later. */
    readonly delay: number;
    /** The connection is reset before the request is processed, or afterwards. */
    readonly resetBefore: number;
    readonly resetAfter: number;
    /** Processed; the connection ends in the middle of the answer. */
    readonly truncate: number;
    /** Processed and never answered; the connection stays open. */
    readonly noAnswer: number;
  };
  readonly socket: {
    readonly refuseUpgrade: number;
    readonly noUpgrade: number;
    /** Within 3 s. */
    readonly resetSocket: number;
    /** Silent within 3 s; the connection stays open. */
    readonly muteSocket: number;
  };
  readonly lease: {
    /** The browser is killed within 3 s. */
    readonly killBrowser: number;
    /** The service ends the lease within 3 s. */
    readonly endLease: number;
  };
}

const STATUSES = [429, 500, 502, 503, 504];

/** A server in front of a local pool, which causes faults by chance. The same seed causes the same faults. */
export class ChaosServer implements AsyncDisposable {
  readonly #pool: LocalPool;
  readonly #seed: number;
  readonly #rates: FaultRates;
  readonly #processOf: (sessionId: string) => number | undefined;
  readonly #counts = new Map<string, number>();
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((request, response) => void this.#pass(request, response));

  /** @param processOf The process of the browser of a session. */
  constructor(
    pool: LocalPool,
    options: { seed: number; rates: FaultRates; processOf: (sessionId: string) => number | undefined },
  ) {
    this.#pool = pool;
    this.#seed = options.seed;
    this.#rates = options.rates;
    this.#processOf = options.processOf;
    this.#server.on('upgrade', (request, socket: Socket, head: Buffer) => {
      this.#upgrade(request, socket, head);
    });
  }

  async listen(): Promise<this> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return this;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.closeAllConnections();
    await once(this.#server.close(), 'close');
  }

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = request.url ?? '';
    const fault = this.#next('request', `${request.method} ${url.replaceAll(/[0-9a-z]{20,}|\?.*/g, '')}`);
    const reset = () => response.socket?.resetAndDestroy();
    if (fault?.name === 'resetBefore') return void reset();
    if (fault?.name === 'status') return void response.writeHead(fault.status).end();
    const { hostname, port, host } = new URL(this.#pool.baseUrl);
    const headers = { ...request.headers, host };
    const sent = httpRequest({ hostname, port, path: url, method: request.method, headers, agent: false });
    response.once('close', () => sent.destroy());
    request.pipe(sent);
    try {
      const [answer] = (await once(sent, 'response')) as [IncomingMessage];
      const body = Buffer.concat(await answer.toArray());
      // The WebSockets of its session lead here, too.
      const text = body.toString('latin1').replaceAll(`ws://${host}`, `ws://${new URL(this.baseUrl).host}`);
      if (url.endsWith('/acquire') && answer.statusCode === 200) this.#endEarly(text);
      if (fault?.name === 'resetAfter') return void reset();
      if (fault?.name === 'noAnswer') return;
      if (fault?.name === 'delay') await sleep(fault.milliseconds, undefined, { ref: false });
      response.writeHead(answer.statusCode!, { ...answer.headers, 'content-length': text.length });
      if (fault?.name !== 'truncate') return void response.end(text, 'latin1');
      response.write(text.slice(0, Math.ceil(text.length / 2)), 'latin1', () => response.destroy());
    } catch {
      reset();
    }
  }

  #upgrade(request: IncomingMessage, client: Socket, head: Buffer): void {
    const fault = this.#next('socket', '');
    this.#keep(client);
    if (fault?.name === 'noUpgrade') return;
    if (fault?.name === 'refuseUpgrade') {
      return void client.end(
        `HTTP/1.1 ${fault.status} Chaos\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`,
      );
    }
    const { hostname, port, host } = new URL(this.#pool.baseUrl);
    const upstream = this.#keep(connect(Number(port), hostname));
    const headers = Object.entries({ ...request.headers, host }).map(([name, value]) => `${name}: ${value}`);
    upstream.write([`GET ${request.url} HTTP/1.1`, ...headers, '', ''].join('\r\n'));
    upstream.write(head);
    client.pipe(upstream).pipe(client);
    client.once('close', () => upstream.destroy());
    const onUpstreamEnd = () => client.destroy();
    upstream.once('close', onUpstreamEnd);
    if (!fault) return;
    setTimeout(() => {
      if (fault.name === 'resetSocket') return void client.resetAndDestroy();
      // For the pool, the client has disconnected.
      upstream.off('close', onUpstreamEnd).unpipe(client).destroy();
      client.unpipe(upstream).pause();
    }, fault.milliseconds).unref();
  }

  #keep(socket: Socket): Socket {
    this.#sockets.add(socket.once('close', () => this.#sockets.delete(socket)));
    return socket.on('error', () => socket.destroy());
  }

  /** Ends the lease of an answer early, perhaps. */
  #endEarly(text: string): void {
    const fault = this.#next('lease', '');
    if (!fault) return;
    const { session_id } = JSON.parse(text) as { session_id: string };
    const { baseUrl, token } = this.#pool;
    setTimeout(() => {
      const pid = this.#processOf(session_id);
      if (fault.name === 'killBrowser') return void (pid !== undefined && process.kill(pid, 'SIGKILL'));
      const options = { method: 'DELETE', headers: { authorization: `Bearer ${token}` } };
      fetch(`${baseUrl}/browsers/${session_id}`, options).catch(() => {});
    }, fault.milliseconds).unref();
  }

  /** Depends only on the seed, the place and the number there, so that parallel requests do not change each other's faults. */
  #next(of: keyof FaultRates, place: string) {
    const at = `${of} ${place}`;
    const nth = (this.#counts.get(at) ?? 0) + 1;
    this.#counts.set(at, nth);
    const digest = createHash('sha256').update(`${this.#seed} ${at} ${nth}`).digest();
    const [first, second, third] = [0, 4, 8].map((offset) => digest.readUInt32BE(offset) / 2 ** 32);
    let rest = first!;
    const name = Object.entries(this.#rates[of]).find(([, rate]) => (rest -= rate) < 0)?.[0];
    const status = STATUSES[Math.floor(second! * STATUSES.length)]!;
    return name === undefined ? undefined : { name, status, milliseconds: Math.ceil(third! * 3_000) };
  }
}
