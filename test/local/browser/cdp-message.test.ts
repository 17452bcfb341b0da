import { expect, it } from 'vitest';
import { readCommand } from '../../../src/local/browser/cdp-message.js';

const BROWSER = 'BROWSER-SESSION';

/** Returns the command that Chromium receives, with the id 7. */
function sent(command: string): unknown {
  return JSON.parse(readCommand(command, BROWSER).withId(7)) as unknown;
}

it.each([
  ['first, as Playwright writes it', { id: 1, method: 'A.b', params: { id: 2 }, sessionId: 'PAGE' }],
  [
    'before the session, as Puppeteer writes it',
    { method: 'A.b', params: { id: 2 }, id: 1, sessionId: 'PAGE' },
  ],
  ['in the middle', { method: 'A.b', id: 1, params: { id: 2 }, sessionId: 'PAGE' }],
  ['last', { method: 'A.b', sessionId: 'PAGE', params: { id: 2 }, id: 1 }],
])('replaces an id that is %s', (_where, command) => {
  const text = JSON.stringify(command);
  expect(readCommand(text, BROWSER).own).toBe(1);
  expect(sent(text)).toEqual({ ...command, id: 7 });
});

it.each([
  [{ id: 1, method: 'A.b' }],
  [{ id: 1, method: 'A.b', sessionId: '' }],
  [{ id: 1, method: 'A.b', params: { sessionId: 'OTHER' } }],
  [{ id: 1, method: 'A.b', params: { deep: { id: 3, sessionId: 'OTHER' } } }],
])('sends %j, which names no session, in the browser session', (command) => {
  expect(sent(JSON.stringify(command))).toEqual({ ...command, id: 7, sessionId: BROWSER });
});

it('keeps a large command as it is', () => {
  const command = { id: 1, method: 'A.b', params: { text: 'ä"\\'.repeat(100_000) }, sessionId: 'PAGE' };
  expect(sent(JSON.stringify(command))).toEqual({ ...command, id: 7 });
});

it('does not let a command hide another one behind a NUL, which ends a message on the pipe', () => {
  const hidden = '{"id":9,"method":"Browser.close"}';
  for (const text of [
    `{"id":1,"method":"A.b","params":{"text":"\0${hidden}\0"},"sessionId":"PAGE"}`,
    `{"id":1,"method":"A.b"}\0${hidden}\0{"id":2,"sessionId":"PAGE"}`,
  ]) {
    const { own, withId } = readCommand(text, BROWSER);
    expect(own).toBeUndefined();
    expect(withId(7)).not.toContain('\0');
  }
});

it.each(['', 'null', '[]', '5', '{', '{"id":"1","method":"A.b"}', '{"method":"A.b"}'])(
  'returns no id for %s, which is not a command',
  (text) => {
    expect(Number.isSafeInteger(readCommand(text, BROWSER).own)).toBe(false);
  },
);
