import { once } from 'node:events';
import { connect } from 'node:net';
import { beforeEach, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { openSharedEndpoint, openSingleEndpoint } from '../../src/drivers/loopback-endpoint.js';
import { rejection } from '../pool/support.js';
import { openIdle } from '../support/idle-connections.js';
import { openClient, PlayedBrowser } from '../support/played-browser.js';

let browser: PlayedBrowser;

beforeEach(async () => {
  browser = await PlayedBrowser.start();
  return () => browser[Symbol.asyncDispose]();
});

/** A client of a loopback endpoint, and the browser's end of its socket. */
async function joined() {
  const { socket, client: far } = await browser.connect();
  const url = await openSingleEndpoint(socket);
  const driver = await dial(url);
  return { socket, far, url, driver };
}

async function dial(url: string): Promise<WebSocket> {
  const driver = new WebSocket(url, { perMessageDeflate: true });
  await once(driver, 'open');
  driver.on('error', () => {});
  return driver;
}

it('passes messages of any kind and size in both directions, uncompressed', async () => {
  const { driver, far, socket } = await joined();
  const got: [string, boolean][] = [];
  driver.on('message', (data, isBinary) => got.push([String(data), isBinary]));
  far.send('{"method":"A.text"}');
  far.send(Buffer.from('{"method":"A.bytes"}'), { binary: true });
  await expect
    .poll(() => got)
    .toEqual([
      ['{"method":"A.text"}', false],
      ['{"method":"A.bytes"}', true],
    ]);
  const kinds: boolean[] = [];
  far.on('message', (_data, isBinary) => kinds.push(isBinary));
  driver.send('text');
  driver.send(Buffer.from('bytes'));
  driver.send('x'.repeat(5_000_000));
  // Not valid UTF-8.
  driver.send(Buffer.from([0xd8]), { binary: false });
  await expect.poll(() => browser.received.map(({ length }) => length)).toEqual([4, 5, 5_000_000, 1]);
  expect(kinds).toEqual([false, true, false, false]);
  expect(driver.extensions).toBe('');
  socket.cut('closed-by-us');
  await once(driver, 'close');
});

it('listens on loopback, with an unguessable path that contains nothing of the session', async () => {
  const { socket } = await browser.connect();
  const [one, two] = [await openSingleEndpoint(socket), await openSingleEndpoint(socket)];
  for (const url of [one, two])
    expect(url).toMatch(/^ws:\/\/127\.0\.0\.1:\d+\/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
  expect(new URL(one).pathname).not.toBe(new URL(two).pathname);
  expect(await canDial(one)).toBe(true);
  expect(await canDial(one, '127.0.0.2')).toBe(false);
  const wrong = new WebSocket(new URL('/wrong', one));
  expect((await rejection(once(wrong, 'open'))).message).toContain('400');
  socket.cut('closed-by-us');
  await socket.ended;
});

it('accepts one client, and no second one', async () => {
  const { url, driver, socket } = await joined();
  const second = new WebSocket(url);
  await expect(once(second, 'open')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  driver.close();
  expect(await socket.ended).toBe('closed-by-callback');
});

it("disconnects the client when the browser's socket ends", async () => {
  const { far, driver, socket } = await joined();
  far.terminate();
  await once(driver, 'close');
  expect(await socket.ended).toBe('dropped');
});

it('survives a client that violates the protocol', async () => {
  const { driver, socket } = await joined();
  // A frame with all reserved bits set, which ws would not send.
  Reflect.get(driver, '_socket').write(Buffer.alloc(64, 0xff));
  expect(await socket.ended).toBe('closed-by-callback');
});

it('stops listening when the socket has ended', async () => {
  const { socket } = await browser.connect();
  const url = await openSingleEndpoint(socket);
  socket.cut('closed-by-us');
  await expect.poll(() => canDial(url)).toBe(false);
});

it('connects each client of a shared endpoint with a socket of its own, until the endpoint is closed', async () => {
  const endpoint = await openSharedEndpoint((signal) => openClient(new URL(browser.url), signal));
  const drivers = [await dial(endpoint.url), await dial(endpoint.url)];
  for (const driver of drivers) driver.send('text');
  await expect.poll(() => browser.received).toEqual(['text', 'text']);
  expect(browser.open).toBe(2);
  const closed = drivers.map((driver) => once(driver, 'close'));
  await endpoint[Symbol.asyncDispose]();
  await Promise.all(closed);
  await expect.poll(() => browser.open).toBe(0);
  expect(await canDial(endpoint.url)).toBe(false);
});

it('accepts clients with the secret beside 500 idle connections', async () => {
  await using endpoint = await openSharedEndpoint(() => Promise.reject(new Error('no browser')));
  const open = await openIdle(Number(new URL(endpoint.url).port), 500);
  await expect.poll(open).toBeLessThanOrEqual(200);
  expect(open()).toBeGreaterThan(150);
  expect((await fetch(endpoint.url.replace('ws:', 'http:'))).status).toBe(426);
});

async function canDial(url: string, host = '127.0.0.1'): Promise<boolean> {
  const dialling = connect(Number(new URL(url).port), host);
  return once(dialling, 'connect').then(
    () => {
      dialling.destroy();
      return true;
    },
    () => false,
  );
}
