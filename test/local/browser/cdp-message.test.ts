import { expect, it } from 'vitest';
import { readCommand } from '../../../src/local/browser/cdp-message.js';

const BROWSER = 'BROWSER-SESSION';

it.each([
  ['first, as Playwright writes it', { id: 1, method: 'A.b', params: { id: 2 }, sessionId: 'PAGE' }],
  ['before the session, as Puppeteer does', { method: 'A.b', params: { id: 2 }, id: 1, sessionId: 'PAGE' }],
  ['in the middle', { method: 'A.b', id: 1, params: { id: 2 }, sessionId: 'PAGE' }],
  ['last', { method: 'A.b', sessionId: 'PAGE', params: { id: 2 }, id: 1 }],
  ['of a large command', { id: 1, params: { text: 'ä"\\'.repeat(100_000) }, sessionId: 'PAGE' }],
  ['without a session', { id: 1, method: 'A.b' }],
  ['with an empty session', { id: 1, method: 'A.b', sessionId: '' }],
  ['beside the session of a parameter', { id: 1, method: 'A.b', params: { sessionId: 'OTHER' } }],
  ['beside deeper ones', { id: 1, method: 'A.b', params: { deep: { id: 3, sessionId: 'OTHER' } } }],
])('replaces an id %s, and sends a command without a session in the browser session', (_where, command) => {
  const { own, withId } = readCommand(JSON.stringify(command), BROWSER);
  const { sessionId } = command as { sessionId?: string };
  expect(own).toBe(1);
  expect(JSON.parse(withId(7))).toEqual({ ...command, id: 7, sessionId: sessionId || BROWSER });
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
  (text) => expect(Number.isSafeInteger(readCommand(text, BROWSER).own)).toBe(false),
);
