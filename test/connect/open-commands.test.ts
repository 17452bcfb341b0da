import { expect, it } from 'vitest';
import { parseMessage, readMessage } from '../../src/connect/message.js';
import { OpenCommands } from '../../src/connect/open-commands.js';

const large = 'x'.repeat(1000);

function open(...commands: object[]): OpenCommands {
  const all = new OpenCommands();
  for (const command of commands) all.add(parseMessage(JSON.stringify(command)));
  return all;
}

function take(commands: OpenCommands, message: object): boolean {
  return commands.take(readMessage(Buffer.from(JSON.stringify(message))));
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
])('a command is open until its response: %s', (_who, command, response) => {
  const commands = open({ id: 1, method: 'Target.setAutoAttach' }, command);
  expect(take(commands, { method: 'Page.loadEventFired', params: { id: 7 } })).toBe(true);
  expect(take(commands, { id: 1, result: {} })).toBe(true);
  expect(commands.ofCallers).toStrictEqual([(command as { method: string }).method]);
  expect(take(commands, response)).toBe(true);
  expect(commands.ofCallers).toStrictEqual([]);
});

it.each([
  { id: 2, result: {}, sessionId: 'S' },
  { id: 1, result: {} },
  { id: 1, result: {}, sessionId: 'T' },
  { id: 2, error: { code: -32_001, message: 'Session with given id not found.' } },
  { id: 0, result: {} },
  { id: -1, error: { code: 1, message: 'no' } },
  { id: 1e308, method: 'Page.loadEventFired', params: {} },
])('a response that no command waits for is none: %j', (response) => {
  const commands = open({ id: 1, method: 'Page.navigate', sessionId: 'S' });
  expect(take(commands, response)).toBe(false);
  expect(take(commands, { id: 1, result: {}, sessionId: 'S' })).toBe(true);
  expect(take(commands, { id: 1, result: {}, sessionId: 'S' })).toBe(false);
});

it('a session begins once: a library would forget its commands', () => {
  const commands = open({ id: 1, method: 'Page.navigate', sessionId: 'S' });
  const attached = { method: 'Target.attachedToTarget', params: { sessionId: 'S', targetInfo: {} } };
  expect(take(commands, attached)).toBe(true);
  expect(take(commands, attached)).toBe(false);
  expect(take(commands, { id: 1, result: {}, sessionId: 'S' })).toBe(true);
  expect(take(commands, { method: 'Target.detachedFromTarget', params: { sessionId: 'S' } })).toBe(true);
  expect(take(commands, attached)).toBe(false);
});

it.each<[string, object]>([
  ['it is detached', { method: 'Page.frameDetached', params: { frameId: 'F' }, sessionId: 'S' }],
  ['the page is left', { method: 'Page.frameNavigated', params: { frame: { id: 'P' } }, sessionId: 'S' }],
])('a frame of a session begins once, until %s', (_how, end) => {
  const attached = (sessionId: string) => ({
    method: 'Page.frameAttached',
    params: { frameId: 'F', parentFrameId: 'P' },
    sessionId,
  });
  const commands = open();
  expect(['S', 'S', 'T'].map((session) => take(commands, attached(session)))).toEqual([true, false, true]);
  const inFrame = { method: 'Page.frameNavigated', params: { frame: { id: 'F', parentId: 'P' } } };
  expect(take(commands, { ...inFrame, sessionId: 'S' })).toBe(true);
  expect(take(commands, attached('S'))).toBe(false);
  expect(take(commands, end)).toBe(true);
  expect(['S', 'T'].map((session) => take(commands, attached(session)))).toEqual([true, false]);
});

it('names no command that a library sends by itself', () =>
  expect(open({ id: 2, method: 'Runtime.releaseObject' }).ofCallers).toStrictEqual([]));

it('keeps the last 100,000 commands of a browser that never responds', () => {
  const commands = new OpenCommands();
  for (let id = 1; id <= 100_001; id++) commands.add({ id, method: 'Page.navigate' });
  expect(commands.ofCallers).toHaveLength(100_000);
  expect(take(commands, { id: 1, result: {} })).toBe(false);
  expect(take(commands, { id: 100_001, result: {} })).toBe(true);
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
