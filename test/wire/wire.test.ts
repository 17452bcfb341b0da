import { beforeEach, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import type { Client } from '../../src/wire/client.js';
import { Flight } from '../../src/wire/flight.js';
import { readMessage } from '../../src/wire/message.js';
import { knownFrames } from '../../src/wire/known-frames.js';
import type { Wire } from '../../src/wire/wire.js';
import { PlayedBrowser, settle } from '../support/played-browser.js';

const large = 'x'.repeat(1000);

let wire: Wire;
let socket: Client;
let far: WebSocket;
/** What the library receives. */
let seen: unknown[];

beforeEach(async () => {
  const browser = await PlayedBrowser.start();
  ({ wire, socket, client: far } = await browser.connect());
  browser.onText = () => {};
  seen = [];
  socket.onMessage = (data) => void seen.push(JSON.parse(String(data)));
  return async () => {
    socket.cut('closed-by-us');
    await browser[Symbol.asyncDispose]();
  };
});

function send(...commands: object[]): void {
  for (const command of commands) socket.send(JSON.stringify(command));
}

/** Returns how many of these messages of the browser the library receives. */
async function receive(...messages: object[]): Promise<number> {
  const before = seen.length;
  for (const message of messages) far.send(JSON.stringify(message));
  await settle();
  return seen.length - before;
}

it.each<[string, object, object]>([
  [
    'Playwright',
    { id: 7, method: 'Page.navigate', params: { large }, sessionId: 'S' },
    { id: 7, result: { large }, sessionId: 'S' },
  ],
  [
    'Puppeteer over CDP',
    { method: 'Page.navigate', params: { large }, id: 7, sessionId: 'S' },
    { id: 7, error: {}, sessionId: 'S' },
  ],
  [
    'Puppeteer over BiDi',
    { id: 7, method: 'browsingContext.navigate', params: {} },
    { type: 'success', id: 7 },
  ],
  [
    'a failed BiDi command',
    { id: 7, method: 'script.evaluate', params: {} },
    { error: 'no such frame', id: 7 },
  ],
  [
    'a client with another order, and a service, too',
    { sessionId: 'S', params: { large, id: 8 }, method: 'Page.navigate', id: 7 },
    { sessionId: 'S', result: { id: 9 }, id: 7 },
  ],
  [
    'a session that has ended',
    { id: 7, method: 'Page.navigate', sessionId: 'S' },
    { method: 'Target.detachedFromTarget', params: { sessionId: 'S' } },
  ],
  [
    'a session that the browser does not have',
    { id: 7, method: 'Page.navigate', sessionId: 'S' },
    { id: 7, error: { code: -32_001, message: 'Session with given id not found.' } },
  ],
])('a command is in flight until its response: %s', async (_who, command, response) => {
  send({ id: 1, method: 'Target.setAutoAttach' }, command);
  expect(await receive({ method: 'Page.loadEventFired', params: { id: 7 } }, { id: 1, result: {} })).toBe(2);
  expect(socket.methodsInFlight).toStrictEqual([(command as { method: string }).method]);
  expect(await receive(response)).toBe(1);
  expect(socket.methodsInFlight).toStrictEqual([]);
});

it.each([
  { id: 2, result: {}, sessionId: 'S' },
  { id: 1, result: {} },
  { id: 1, result: {}, sessionId: 'T' },
  { id: 2, error: { code: -32_001, message: 'Session with given id not found.' } },
  { id: 0, result: {} },
  { id: -1, error: { code: 1, message: 'no' } },
  { id: 1e308, method: 'Page.loadEventFired', params: {} },
])('a response that no command waits for reaches nobody: %j', async (response) => {
  send({ id: 1, method: 'Page.navigate', sessionId: 'S' });
  expect(await receive(response)).toBe(0);
  expect(await receive({ id: 1, result: {}, sessionId: 'S' }, { id: 1, result: {}, sessionId: 'S' })).toBe(1);
});

it('a session begins once: a library would forget its commands', async () => {
  const targetInfo = { targetId: 'T', type: 'page', url: '' };
  const attached = { method: 'Target.attachedToTarget', params: { sessionId: 'S', targetInfo } };
  send({ id: 1, method: 'Page.navigate', sessionId: 'S' });
  expect(await receive(attached, attached)).toBe(1);
  expect(await receive({ id: 1, result: {}, sessionId: 'S' })).toBe(1);
});

it.each<[string, object]>([
  ['it is detached', { method: 'Page.frameDetached', params: { frameId: 'F' }, sessionId: 'S' }],
  [
    'the page is left',
    { method: 'Page.frameNavigated', params: { frame: { id: 'P', url: '' } }, sessionId: 'S' },
  ],
])('a frame of a session begins once, until %s', async (_how, end) => {
  wire.shared.stack.add(knownFrames());
  const attached = (sessionId: string) => ({
    method: 'Page.frameAttached',
    params: { frameId: 'F', parentFrameId: 'P' },
    sessionId,
  });
  expect(await receive(...['S', 'S', 'T'].map(attached))).toBe(2);
  const inFrame = { method: 'Page.frameNavigated', params: { frame: { id: 'F', parentId: 'P', url: '' } } };
  expect(await receive({ ...inFrame, sessionId: 'S' }, attached('S'))).toBe(1);
  expect(await receive(end, ...['S', 'T'].map(attached))).toBe(2);
});

it('each frame of a page begins, and begins again after its own end only', async () => {
  wire.shared.stack.add(knownFrames());
  const attached = (frameId: string) => ({
    method: 'Page.frameAttached',
    params: { frameId, parentFrameId: 'P' },
    sessionId: 'S',
  });
  expect(await receive(...['F', 'G', 'F'].map(attached))).toBe(2);
  const ended = { method: 'Page.frameDetached', params: { frameId: 'G' }, sessionId: 'S' };
  expect(await receive(ended, ...['F', 'G'].map(attached))).toBe(2);
});

it('keeps the last 100,000 commands of a browser that never responds', () => {
  const flight = new Flight();
  for (let id = 1; id <= 100_001; id++) flight.add({ id }, { method: 'Page.navigate' });
  expect(flight.take({ id: 1 })).toBeUndefined();
  expect(flight.take({ id: 2 })).toBeDefined();
  expect(flight.take({ id: 100_001 })).toBeDefined();
});

it.each([
  ['', { id: 1, sessionId: 'S' }],
  [',"id":2', { id: 2, sessionId: 'S' }],
  [String.raw`,"\u0069d":2`, { id: 2, sessionId: 'S' }],
  [',"sessionId":"T"', { id: 1, sessionId: 'S' }],
  [',"method":"Page.enable"', { id: 1, method: 'Page.enable' }],
])('reads what a large message is, whatever its content replaces: %s', (more, expected) => {
  const text = `{"id":1,"result":{"data":"${'x'.repeat(100_000)}"}${more},"sessionId":"S"}`;
  expect(readMessage(Buffer.from(text))).toMatchObject(expected);
  const error = `{"id":1,"result":{"data":"${'x'.repeat(100_000)}"}${more},"error":{"code":-32001}}`;
  expect(readMessage(Buffer.from(error))).toMatchObject({ error: { code: -32_001 } });
});
