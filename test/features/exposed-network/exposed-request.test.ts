import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { afterEach, expect, it } from 'vitest';
import { ExposedHosts } from '../../../src/features/exposed-network/exposed-hosts.js';
import {
  ExposedSender,
  TooLargeError,
  type ExposedRequest,
  type StreamLimits,
} from '../../../src/features/exposed-network/exposed-request.js';

const TEXT = 'The same sentence, many times. '.repeat(1000);
const LIMITS = { eventSource: 100, silence: 200, total: 400 };

const opened: (() => unknown)[] = [];
afterEach(() => opened.splice(0).forEach((close) => close()));

async function serve(onRequest: RequestListener, limits?: StreamLimits) {
  const server = createServer(onRequest);
  let connections = 0;
  server.on('connection', () => connections++);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const sender = new ExposedSender(limits);
  opened.push(
    () => sender.close(),
    () => server.closeAllConnections(),
    () => server.close(),
  );
  const { port } = server.address() as AddressInfo;
  const url = new ExposedHosts('127.0.0.1').read(`http://127.0.0.1:${port}/`, 'request')!;
  const request = { url, method: 'GET', headers: {}, body: undefined, isEventSource: false };
  const send = (changes: Partial<ExposedRequest> = {}) =>
    sender.send({ ...request, ...changes }, new AbortController().signal);
  return { server, send, connections: () => connections };
}

const ENCODINGS: [name: string, body: Buffer][] = [
  ['gzip', gzipSync(TEXT)],
  ['identity, gzip', gzipSync(TEXT)],
  ['br', brotliCompressSync(TEXT)],
  ['deflate', deflateSync(TEXT)],
  ['deflate', deflateRawSync(TEXT)],
  ['gzip, br', brotliCompressSync(gzipSync(TEXT))],
];

it.each(ENCODINGS)('decodes %s, and drops the headers that no longer apply', async (encoding, body) => {
  const { send } = await serve((_request, response) =>
    response.writeHead(200, { 'Content-Encoding': encoding, 'Content-Length': body.length }).end(body),
  );
  const response = await send();
  expect(String(response.body)).toBe(TEXT);
  expect(response.headers.filter((header) => /^content/i.test(header))).toEqual([]);
});

it('passes an unknown encoding, a length without an encoding, and each cookie as it is, byte by byte', async () => {
  const { send } = await serve(({ url }, response) => {
    response.setHeader('X-Raw', Buffer.from('ü').toString('latin1'));
    response.setHeader('Set-Cookie', ['a=1; HttpOnly', 'b=2']);
    response
      .writeHead(200, 'Fine', { 'Content-Length': 3, ...(url === '/' && { 'Content-Encoding': 'zstd' }) })
      .end(Buffer.from('abc'));
  });
  const response = await send();
  expect(response).toMatchObject({ status: 200, reason: 'Fine', body: Buffer.from('abc'), isCut: false });
  expect(response.headers.filter((header) => !/^date/i.test(header))).toEqual([
    'X-Raw: Ã¼',
    'Set-Cookie: a=1; HttpOnly',
    'Set-Cookie: b=2',
    'Content-Length: 3',
    'Content-Encoding: zstd',
  ]);
});

it('forwards the headers of the page, but none of its connection, and follows no redirect', async () => {
  let seen: object = {};
  const { send } = await serve(({ headers }, response) => {
    seen = headers;
    response.writeHead(302, { location: '/elsewhere' }).end();
  });
  const headers = {
    Cookie: 'a=1',
    Connection: 'close',
    'Proxy-Authorization': 'secret',
    Host: 'other',
    Origin: 'http://a',
  };
  expect(await send({ method: 'POST', body: Buffer.from('abc'), headers })).toMatchObject({ status: 302 });
  expect(seen).toEqual({
    'accept-encoding': 'gzip, deflate, br',
    'accept-language': 'en-US,en;q=0.9',
    cookie: 'a=1',
    origin: 'http://a',
    host: expect.stringMatching(/^127\.0\.0\.1:/),
    connection: 'keep-alive',
    'content-length': '3',
  });
});

it.each([
  ['a stream of events of an EventSource', { isEventSource: true }, 'data: 1\n\n'],
  ['a response that is silent', {}, 'beginning'],
  ['a compressed response that is silent', { headers: { zip: '1' } }, 'beginning'],
  ['a response that never ends', { headers: { tick: '1' } }, /^(tick)+$/],
])('cuts %s, and returns its beginning', async (_name, changes, text) => {
  let isGone = false;
  const { send } = await serve(({ headers }, response) => {
    response.on('close', () => (isGone = true));
    if (headers['zip']) {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      return response.write(gzipSync(text as string).subarray(0, -8));
    }
    if (!headers['tick']) return response.write(text);
    const timer = setInterval(() => response.write('tick'), 20);
    return response.on('close', () => clearInterval(timer));
  }, LIMITS);
  const response = await send(changes);
  expect(response.isCut).toBe(true);
  expect(String(response.body)).toMatch(text);
  await expect.poll(() => isGone).toBe(true);
});

it('waits for a response with a length, however long it takes', async () => {
  const { send } = await serve((_request, response) => {
    response.writeHead(200, { 'content-length': 10 });
    let sent = 0;
    const timer = setInterval(() => {
      response.write('x');
      if (++sent === 10) clearInterval(timer);
    }, LIMITS.total / 8);
  }, LIMITS);
  expect(await send()).toMatchObject({ isCut: false, body: Buffer.from('x'.repeat(10)) });
});

it.each([
  ['by its length', (size: number) => ({ 'content-length': size })],
  ['when it has arrived', () => ({})],
])('refuses a body that CDP can not carry, %s', async (_when, headersOf) => {
  const size = 64 * 1024 * 1024 + 1;
  const headers = headersOf(size);
  const { send } = await serve((_request, response) => {
    response.writeHead(200, headers);
    response.write('content-length' in headers ? 'x' : Buffer.alloc(size));
  });
  await expect(send()).rejects.toThrow(TooLargeError);
});

it('uses its connections again, and repeats a request for which the server had closed one', async () => {
  let requests = 0;
  const { send, connections, server } = await serve((_request, response) => response.end(`${++requests}`));
  for (let count = 0; count < 3; count++) await send();
  expect(connections()).toBe(1);
  const sending = send({ method: 'POST', body: Buffer.from('abc') });
  server.closeAllConnections();
  expect(String((await sending).body)).toBe('4');
});

it('repeats a request once, over a new connection, if the server has closed all idle ones', async () => {
  const { send, server } = await serve((_request, response) => response.end('done'));
  await Promise.all([send(), send(), send(), send()]);
  const sending = send();
  server.closeAllConnections();
  expect(String((await sending).body)).toBe('done');
});

it('rejects with the code of the connection', async () => {
  const { send, server } = await serve(() => {});
  server.close();
  await expect(send()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});
