import { setTimeout as sleep } from 'node:timers/promises';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { expect } from 'vitest';
import { session } from '../support/fake-service.js';
import { it } from '../pool/support.js';

interface Played {
  body?: Buffer;
  headers?: Record<string, string>;
  /** Sent before the response. Several parts are packets of their own. */
  before?: readonly string[];
}

const SESSION = Buffer.from(JSON.stringify(session()));
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

it.for<[string, Played]>([
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
])('leases and releases a browser through a gateway that sends %s', async ([, played], { service, pool }) => {
  const { body = SESSION, headers, before = [] } = played;
  service.script('acquire', async (response) => {
    const socket = response.socket!.setNoDelay();
    socket.cork();
    for (const part of before) {
      socket.write(part);
      if (before.length === 1) continue;
      socket.uncork();
      await sleep(5);
      socket.cork();
    }
    response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(body);
    socket.uncork();
  });
  for (let lease = 0; lease < 2; lease++) {
    expect((await pool.acquire())?.session_id).toBe('session-1');
    await pool.release('session-1');
  }
  expect(service.requests).toHaveLength(4);
  expect(service.connections.made).toBe(1);
});
