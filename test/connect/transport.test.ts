import { afterEach, beforeEach, expect, it } from 'vitest';
import { socketTransport } from '../../src/connect/transport.js';
import { PlayedBrowser, settle } from '../support/played-browser.js';

let browser: PlayedBrowser;

beforeEach(async () => {
  browser = await PlayedBrowser.start();
});

afterEach(() => browser[Symbol.asyncDispose]());

it('passes text in both directions', async () => {
  const { socket, client } = await browser.connect();
  const transport = socketTransport(socket, 'cdp');
  const got: unknown[] = [];
  transport.onmessage = (message) => got.push(message);
  transport.send('{"id":1}');
  client.send('{"id":1,"result":{}}');
  await expect.poll(() => got).toEqual(['{"id":1,"result":{}}']);
  await expect.poll(() => browser.received).toEqual(['{"id":1}']);
});

it('accepts messages before Puppeteer listens, and after the end', async () => {
  const { socket, client } = await browser.connect();
  const transport = socketTransport(socket, 'cdp');
  client.send('{"early":1}');
  client.send('{"early":2}', () => client.close(1001));
  expect(await socket.ended).toBe('closed-by-service');
  // There is no close listener either.
  await settle();
  expect(() => transport.send('{"id":1}')).toThrow('ended');
});

it.each([
  ['cdp', 'Browser.close'],
  ['bidi', 'browser.close'],
] as const)(
  'closes the connection when Puppeteer closes it, and when the callback closes the browser over %s',
  async (protocol, method) => {
    const closing = (await browser.connect()).socket;
    socketTransport(closing, protocol).close();
    expect(await closing.ended).toBe('closed-by-callback');
    const { socket } = await browser.connect();
    socketTransport(socket, protocol).send(JSON.stringify({ id: 1, method, params: {} }));
    expect(await socket.ended).toBe('closed-by-callback');
    expect(browser.received).toEqual([]);
  },
);

it.each([
  ['cdp', { method: 'browser.close' }],
  ['bidi', { method: 'Browser.close' }],
  ['cdp', { method: 'Page.close' }],
  // A script may contain the name of the command. Commands that close the browser are short.
  ['cdp', { method: 'Runtime.evaluate', params: { expression: `"Browser.close"${' '.repeat(200)}` } }],
] as const)('sends other messages over %s: %j', async (protocol, command) => {
  const { socket } = await browser.connect();
  const text = JSON.stringify(command).replaceAll('\\"', '"');
  socketTransport(socket, protocol).send(text);
  await expect.poll(() => browser.received).toEqual([text]);
});

it('notifies the lease of the end before Puppeteer, whose error would hide the reason', async () => {
  const { socket, client } = await browser.connect();
  const transport = socketTransport(socket, 'cdp');
  const order: string[] = [];
  transport.onclose = () => order.push('driver');
  void socket.ended.then(async () => {
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    order.push('lease');
  });
  client.terminate();
  await expect.poll(() => order).toEqual(['lease', 'driver']);
  expect(() => transport.send('{"id":1}')).toThrow('ended');
});
