import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { openSingleEndpoint } from '../../src/connect/loopback-endpoint.js';
import { rejection } from '../service/support.js';
import { PlayedBrowser } from '../support/played-browser.js';

let browser: PlayedBrowser;

beforeEach(async () => {
  browser = await PlayedBrowser.start();
});

afterEach(() => browser[Symbol.asyncDispose]());

/** A driver at the relay of a socket, and the browser's end of that. */
async function joined() {
  const { socket, client: far } = await browser.connect();
  const relay = await openSingleEndpoint(socket);
  const driver = await dial(relay.url);
  return { socket, far, relay, driver };
}

async function dial(url: string): Promise<WebSocket> {
  const driver = new WebSocket(url, { perMessageDeflate: true });
  await once(driver, 'open');
  driver.on('error', () => {});
  return driver;
}

it('joins a driver to the browser: texts and bytes both ways, each as what it is, uncompressed', async () => {
  const { driver, far, socket } = await joined();
  const got: [string, boolean][] = [];
  driver.on('message', (data, isBinary) => got.push([String(data), isBinary]));
  far.send('{"text":1}');
  far.send(Buffer.from('{"bytes":2}'), { binary: true });
  await expect
    .poll(() => got)
    .toEqual([
      ['{"text":1}', false],
      ['{"bytes":2}', true],
    ]);
  const kinds: boolean[] = [];
  far.on('message', (_data, isBinary) => kinds.push(isBinary));
  driver.send('text');
  driver.send(Buffer.from('bytes'));
  await expect.poll(() => browser.received).toEqual(['text', 'bytes']);
  expect(kinds).toEqual([false, true]);
  expect(driver.extensions).toBe('');
  socket.cut('closed-by-us');
  await once(driver, 'close');
});

it('carries uploads of any size, and texts that are not quite UTF-8', async () => {
  const { driver, socket } = await joined();
  driver.send('x'.repeat(5_000_000));
  driver.send(Buffer.from([0xd8]), { binary: false });
  await expect.poll(() => browser.received.map(({ length }) => length)).toEqual([5_000_000, 1]);
  socket.cut('closed-by-us');
  await once(driver, 'close');
});

it('is on loopback, behind a path that cannot be guessed and tells nothing of the session', async () => {
  const { socket } = await browser.connect();
  const [one, two] = [await openSingleEndpoint(socket), await openSingleEndpoint(socket)];
  for (const { url } of [one, two])
    expect(url).toMatch(/^ws:\/\/127\.0\.0\.1:\d+\/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
  expect(new URL(one.url).pathname).not.toBe(new URL(two.url).pathname);
  expect(await canDial(one.url)).toBe(true);
  expect(await canDial(one.url, '127.0.0.2')).toBe(false);
  const wrong = new WebSocket(new URL('/wrong', one.url));
  expect((await rejection(once(wrong, 'open'))).message).toContain('400');
  socket.cut('closed-by-us');
  await socket.ended;
});

it('lets in one driver, and no other after it', async () => {
  const { relay, driver, socket } = await joined();
  const second = new WebSocket(relay.url);
  await expect(once(second, 'open')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  driver.close();
  expect(await socket.ended).toBe('closed-by-callback');
});

it('ends the driver when the browser is gone', async () => {
  const { far, driver, socket } = await joined();
  far.terminate();
  await once(driver, 'close');
  expect(await socket.ended).toBe('dropped');
});

it('survives a driver that breaks the protocol', async () => {
  const { driver, socket } = await joined();
  // A frame with all reserved bits set, past ws.
  Reflect.get(driver, '_socket').write(Buffer.alloc(64, 0xff));
  expect(await socket.ended).toBe('closed-by-callback');
});

it.each(['the connect is over', 'the socket has ended'])('listens no more once %s', async (when) => {
  const { socket } = await browser.connect();
  const { url, close } = await openSingleEndpoint(socket);
  if (when === 'the connect is over') close();
  else socket.cut('closed-by-us');
  await expect.poll(() => canDial(url)).toBe(false);
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
