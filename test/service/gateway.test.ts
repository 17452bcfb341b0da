import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { BrowserPool } from '../../src/service/browser-pool.js';
import { session, TOKEN } from '../support/fake-service.js';

interface Played {
  body?: Buffer;
  headers?: Record<string, string>;
  /** Sent before the response. Several parts are packets of their own. */
  before?: readonly string[];
}

const SESSION = Buffer.from(JSON.stringify(session()));

/** Answers each request of the API as a gateway does that changes the responses of a service. */
async function startGateway({ body = SESSION, headers = {}, before = [] }: Played) {
  const requests: string[] = [];
  const answer = async (client: Socket, text: string) => {
    requests.push(/^\w+ (?:\S*\/)?(\w+)/.exec(text)![1]!);
    client.cork();
    for (const part of before) {
      client.write(part);
      if (before.length > 1) await flush(client);
    }
    const fields = { 'content-type': 'application/json', ...headers, 'content-length': String(body.length) };
    const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
    const isGrant = requests.at(-1) === 'acquire';
    client.write(isGrant ? `HTTP/1.1 200 OK\r\n${head.join('')}\r\n` : 'HTTP/1.1 204 No Content\r\n\r\n');
    if (isGrant) client.write(body);
    client.uncork();
  };
  const clients = new Set<Socket>();
  const server = createServer((client) => {
    clients.add(client.setNoDelay());
    client.on('error', () => {}).on('data', (data) => void answer(client, String(data)));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    requests,
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      for (const client of clients) client.destroy();
      await once(server.close(), 'close');
    },
  };
}

async function flush(client: Socket): Promise<void> {
  client.uncork();
  await sleep(5);
  client.cork();
}

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

it.each<[string, Played]>([
  ['an unsolicited 100', { before: [CONTINUE] }],
  ['an unsolicited 100 in a packet of its own', { before: [CONTINUE, ''] }],
  ['an unsolicited 100 with headers', { before: ['HTTP/1.1 100 Continue\r\nvia: gateway\r\n\r\n'] }],
  ['an unsolicited 100 in three packets', { before: ['HTTP/1.', '1 10', '0 Continue\r\n\r\n'] }],
  ['a 102 and a 103', { before: ['HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n'] }],
  ['gzip', { body: gzipSync(SESSION), headers: { 'content-encoding': 'gzip' } }],
  ['deflate', { body: deflateSync(SESSION), headers: { 'content-encoding': 'deflate' } }],
  ['br', { body: brotliCompressSync(SESSION), headers: { 'content-encoding': 'br' } }],
  ['a byte order mark', { body: Buffer.concat([Buffer.from('\uFEFF'), SESSION]) }],
  ['text/plain', { headers: { 'content-type': 'text/plain; charset=utf-8' } }],
  ['17 KB of headers', { headers: { 'x-trace': 'x'.repeat(17 * 1024) } }],
])('leases and releases a browser through a gateway that sends %s', async (_what, played) => {
  await using gateway = await startGateway(played);
  await using pool = new BrowserPool('pool', { baseUrl: gateway.baseUrl, token: TOKEN });
  for (let lease = 0; lease < 2; lease++) {
    const granted = await pool.acquire();
    expect(granted?.session_id).toBe('session-1');
    await pool.release('session-1', { reuse: true });
  }
  expect(gateway.requests).toStrictEqual(['acquire', 'release', 'acquire', 'release']);
});
