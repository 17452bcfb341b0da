import { expect, it } from 'vitest';
import { PendingCalls } from '../../src/connect/pending-calls.js';

const frame = (message: object) => Buffer.from(JSON.stringify(message));
const large = 'x'.repeat(1000);

it.each<[string, object, object]>([
  [
    'Playwright',
    { id: 7, method: 'Page.navigate', params: { large }, sessionId: 'S' },
    { id: 7, result: { large } },
  ],
  [
    'Puppeteer over CDP',
    { method: 'Page.navigate', params: { large }, id: 7, sessionId: 'S' },
    { id: 7, error: {} },
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
])('a command is pending until its response: %s', (_who, command, response) => {
  const calls = new PendingCalls();
  calls.noteCommand(frame({ id: 1, method: 'Target.setAutoAttach' }));
  calls.noteCommand(JSON.stringify(command));
  calls.noteResponse(frame({ method: 'Page.loadEventFired', params: { id: 7 } }));
  calls.noteResponse(frame({ id: 1, result: {} }));
  expect(calls.pending).toStrictEqual([(command as { method: string }).method]);
  calls.noteResponse(frame(response));
  expect(calls.pending).toStrictEqual([]);
});

it('names no command that a library sends by itself, and none to a service whose responses it can not read', () => {
  const calls = new PendingCalls();
  calls.noteCommand(frame({ id: 1, method: 'Page.navigate' }));
  calls.noteCommand(frame({ id: 2, method: 'Runtime.releaseObject' }));
  calls.noteResponse(frame({ result: {}, id: 1 }));
  expect(calls.pending).toStrictEqual([]);
});
