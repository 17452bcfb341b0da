import { describe, expect, it, vi } from 'vitest';
import type { WebSocket } from 'ws';
import { ask, closed, startApi, tryWebSocket, type Api } from './support.js';

const api = await startApi();
const existing = await startApi({ quirks: { bidiSession: 'existing' } });
const NEW = { id: 1, method: 'session.new', params: { capabilities: {} } };
const TREE = { id: 2, method: 'browsingContext.getTree', params: {} };
const STATUS = { id: 3, method: 'session.status', params: {} };
const END = { id: 4, method: 'session.end', params: {} };

describe('a BiDi socket', () => {
  it('expects session.new first, and answers it with session and capabilities as chromedriver does', () =>
    withSocket(api, async (socket, sessionId) => {
      expect(await ask(socket, STATUS)).toMatchObject({ type: 'success', id: 3, result: { ready: true } });
      expect(await ask(socket, TREE)).toMatchObject({ type: 'error', id: 2, error: 'invalid session id' });
      const capabilities = {
        browserName: 'chrome',
        browserVersion: expect.stringMatching(/^\d+(\.\d+){3}$/),
        platformName: expect.stringMatching(/^(linux|mac|windows)$/),
      };
      expect(await ask(socket, NEW)).toMatchObject({
        type: 'success',
        id: 1,
        result: { sessionId, capabilities },
      });
      expect(await ask(socket, STATUS)).toMatchObject({ result: { ready: false } });
      expect(await ask(socket, NEW)).toMatchObject({ type: 'error', error: 'session not created' });
      expect(await ask(socket, TREE)).toMatchObject({ type: 'success', id: 2, result: { contexts: [{}] } });
    }));

  it('refuses invalid messages, unknown commands and wrong parameters', () =>
    withSocket(api, async (socket) => {
      const failure = { type: 'error', error: 'invalid argument' };
      for (const message of ['{', '[]', '{"id": 1}', '{"id": "1", "method": "session.status"}']) {
        expect(await ask(socket, message)).toMatchObject({ ...failure, id: null });
      }
      await ask(socket, NEW);
      const wrong = { id: 5, method: 'browsingContext.navigate', params: { context: 7 } };
      expect(await ask(socket, wrong)).toMatchObject({ ...failure, id: 5 });
      const unknown = { id: 6, method: 'no.such', params: {} };
      expect(await ask(socket, unknown)).toMatchObject({ type: 'error', error: 'unknown command', id: 6 });
    }));

  it('closes after session.end; the browser stays and accepts the next session', async () => {
    for (let session = 0; session < 2; session++) {
      await withSocket(api, async (socket) => {
        await ask(socket, NEW);
        expect(await ask(socket, END)).toEqual({ type: 'success', id: 4, result: {} });
        await closed(socket);
      });
    }
    expect(api.pool.stats()).toMatchObject({ idle: 1, destroyed: 0 });
  });

  it('causes no unhandled rejection when the connection breaks during commands, or a page logs while it is closed', async () => {
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    for (const log of ["'text'", '{ some: [1] }', 'document'])
      await withSocket(api, async (socket) => {
        await ask(socket, NEW);
        const created = await ask(socket, {
          id: 2,
          method: 'browsingContext.create',
          params: { type: 'tab' },
        });
        const { context } = (created as { result: { context: string } }).result;
        const expression = `onpagehide = () => { console.log(${log}); setTimeout(() => { throw 1 }); throw ${log} }`;
        const script = { expression, target: { context }, awaitPromise: false };
        await ask(socket, { id: 3, method: 'script.evaluate', params: script });
        await ask(socket, { id: 4, method: 'browsingContext.close', params: { context } });
      });
    for (let session = 0; session < 3; session++) {
      await withSocket(api, async (socket) => {
        await ask(socket, NEW);
        for (let id = 10; id < 30; id++) {
          socket.send(JSON.stringify({ id, method: 'browsingContext.create', params: { type: 'tab' } }));
        }
        await new Promise((resolve) => socket.once('message', resolve));
        socket.terminate();
      });
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });
});

it('refuses session.new and keeps the session after session.end with the quirk bidiSession: existing', () =>
  withSocket(existing, async (socket) => {
    const tree = { type: 'success', id: 2, result: { contexts: [{}] } };
    expect(await ask(socket, TREE)).toMatchObject(tree);
    expect(await ask(socket, NEW)).toMatchObject({ type: 'error', id: 1, error: 'session not created' });
    expect(await ask(socket, STATUS)).toMatchObject({ result: { ready: false } });
    expect(await ask(socket, END)).toEqual({ type: 'success', id: 4, result: {} });
    expect(await ask(socket, TREE)).toMatchObject(tree);
  }));

async function withSocket(from: Api, use: (socket: WebSocket, sessionId: string) => Promise<void>) {
  const session = await from.lease();
  const { outcome, socket } = await tryWebSocket(session.webdriver_ws_url);
  expect(outcome).toBe('open');
  await use(socket, session.session_id);
  socket.close();
  await from.release(session);
}
