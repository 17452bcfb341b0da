import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { WebSocket } from 'ws';
import { BrowserClients } from '../../src/features/exposed-network/browser-clients.js';
import { CdpClient } from '../../src/wire/cdp-client.js';
import { openPageSession } from '../../src/wire/page-session.js';
import { newShared, Wire } from '../../src/wire/wire.js';
import { PlayedBrowser, settle } from '../support/played-browser.js';

interface Received {
  readonly id: number;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly sessionId?: string;
}
type Kind = 'library' | 'further' | 'own';

/** A browser, and connections to it that share what those of one lease do. */
async function play() {
  const browser = await PlayedBrowser.start();
  const shared = newShared();
  /** The commands that a connection has sent. */
  const sent = new Map<WebSocket, Received[]>();
  /** Answers a command; undefined: it has no answer. */
  const how = { answer: (_command: Received): object | undefined => undefined };
  browser.onText = (text, far) => {
    const command = JSON.parse(text) as Received;
    sent.set(far, [...(sent.get(far) ?? []), command]);
    const { id, sessionId } = command;
    const answer = how.answer(command);
    if (answer) far.send(JSON.stringify({ id, sessionId, ...answer }));
  };
  const wires: Wire[] = [];
  onTestFinished(async () => {
    for (const wire of wires) wire.main.cut();
    await browser[Symbol.asyncDispose]();
  });
  return {
    shared,
    how,
    async connect(kind: Kind = 'library') {
      const wire = await Wire.open(new URL(browser.url), new AbortController().signal, { shared, kind });
      wires.push(wire);
      const far = browser.clients.at(-1)!;
      const seen: Record<string, unknown>[] = [];
      if (kind !== 'own') wire.main.onMessage = (data) => void seen.push(JSON.parse(String(data)));
      const say = async (...messages: object[]) => {
        for (const message of messages) far.send(JSON.stringify(message));
        await settle();
      };
      return { wire, far, seen, say, sent: () => sent.get(far) ?? [] };
    },
  };
}

const attached = (sessionId: string, targetId = 't', more: object = {}) => ({
  method: 'Target.attachedToTarget',
  params: {
    sessionId,
    targetInfo: { targetId, type: 'page', url: 'about:blank' },
    waitingForDebugger: true,
    ...more,
  },
});
const detached = (sessionId: string, more: object = {}) => ({
  method: 'Target.detachedFromTarget',
  params: { sessionId },
  ...more,
});
const INFO = { targetInfo: attached('S').params.targetInfo };
const opensSession = ({ method }: Received) =>
  method === 'Target.attachToBrowserTarget' ? { result: { sessionId: 'R' } } : undefined;

it('forgets the sessions of a further WebSocket with it, and what its client has set there', async () => {
  const { shared, connect } = await play();
  const clients = new BrowserClients(shared.sessions);
  shared.stack.add(clients.layer);
  await connect();
  const { wire, say } = await connect('further');
  await say(attached('S'));
  const params = { headers: { 'x-old': '1' } };
  wire.main.send(JSON.stringify({ id: 1, method: 'Network.setExtraHTTPHeaders', params, sessionId: 'S' }));
  await expect.poll(() => clients.headersOf('t')).toEqual({ 'x-old': '1' });
  wire.main.cut();
  await expect.poll(() => clients.headersOf('t')).toEqual({});
  expect(shared.sessions.get('S')).toBeUndefined();
});

it('ends the commands of a session that we end, and passes nothing of it to the library', async () => {
  const { shared, how, connect } = await play();
  how.answer = opensSession;
  const { wire, seen, say, sent } = await connect();
  const client = await wire.openSession('own');
  const cdp = new CdpClient(client);
  await say({ ...attached('C'), sessionId: 'R' });
  const failed = cdp.send('Runtime.evaluate', {}, 'C').catch((error: Error) => error.message);
  client.cut();
  expect(await failed).toContain('has ended');
  // What is on its way meanwhile.
  await say({ ...attached('D', 'u'), sessionId: 'R' }, detached('C', { sessionId: 'R' }), detached('R'));
  expect(seen).toEqual([]);
  expect(['R', 'C', 'D'].map((id) => shared.sessions.get(id))).toEqual([undefined, undefined, undefined]);
  expect(sent().at(-1)).toMatchObject({ method: 'Target.detachFromTarget', params: { sessionId: 'R' } });
});

it('ends all sessions below one that the browser ends, with their commands and clients', async () => {
  const { shared, how, connect } = await play();
  how.answer = opensSession;
  const { wire, say } = await connect();
  const client = await wire.openSession('further');
  await say({ ...attached('P'), sessionId: 'R' });
  const page = wire.clientOf('P', 'further');
  await say({ ...attached('W', 'w'), sessionId: 'P' });
  const settled = vi.fn();
  page.request({ id: 2 ** 30, method: 'Page.enable', params: {}, sessionId: 'W' }, settled);
  await say(detached('R'));
  await Promise.all([client.detached, page.detached]);
  expect(settled).toHaveBeenCalledWith(undefined);
  expect(shared.sessions.all()).toEqual([]);
});

it('keeps nothing of the URL of a page that has ended, which can be as long as a document', async () => {
  const { shared, connect } = await play();
  const { say } = await connect();
  const long = { targetId: 't', type: 'page', url: `data:text/html,${'x'.repeat(100_000)}` };
  const changed = { method: 'Target.targetInfoChanged', params: { targetInfo: long } };
  await say(attached('P'), changed, attached('Q', 'u', { targetInfo: { ...long, targetId: 'u' } }));
  await say(detached('P'), changed, detached('Q'));
  const kept = ['t', 'u'].map((id) => shared.sessions.target(id));
  expect(kept).toMatchObject([{ type: 'page' }, { type: 'page' }]);
  expect(JSON.stringify(kept).length).toBeLessThan(1000);
});

it('detaches the session of a page below the session in which it was opened', async () => {
  const { how, connect } = await play();
  how.answer = opensSession;
  const { wire, say, sent } = await connect();
  await wire.openSession('further');
  await say({ ...attached('P'), sessionId: 'R' });
  wire.clientOf('P', 'further').cut();
  await expect
    .poll(() => sent().at(-1))
    .toMatchObject({ method: 'Target.detachFromTarget', params: { sessionId: 'P' }, sessionId: 'R' });
});

it.each([
  ['before the end of its session', false],
  ['after it', true],
])('gives the error of a command of an ended session, sent %s, to nobody else', async (_when, isLate) => {
  const { how, connect } = await play();
  how.answer = opensSession;
  const { wire, seen, say, sent } = await connect();
  const further = await wire.openSession('further');
  const told: object[] = [];
  further.onMessage = (data) => void told.push(JSON.parse(String(data)));
  await say({ ...attached('T'), sessionId: 'R' }, attached('S', 's'));
  seen.splice(0);
  const end = () => say(detached('T', { sessionId: 'R' }));
  const ask = (client: { send(text: string): void }, sessionId?: string) =>
    client.send(JSON.stringify({ id: 7, method: 'Page.enable', params: {}, sessionId }));
  ask(wire.main, 'S');
  ask(wire.main);
  if (isLate) await end();
  ask(further, 'T');
  await expect.poll(() => sent().filter(({ id }) => id === 7)).toHaveLength(3);
  if (!isLate) await end();
  told.splice(0);
  const error = { code: -32_001, message: 'Session with given id not found.' };
  await say({ id: 7, error }, { id: 7, result: {}, sessionId: 'S' }, { id: 7, result: {} });
  expect(seen).toEqual([
    { id: 7, result: {}, sessionId: 'S' },
    { id: 7, result: {} },
  ]);
  expect(told).toEqual(isLate ? [{ id: 7, error }] : []);
});

it('ends the connection, not the process, at an answer to a layered command of ours that is no JSON', async () => {
  const { shared, connect } = await play();
  shared.stack.addLimits({ name: 'a test', commands: { '*': (_command, next) => next() } });
  const { wire, far, sent } = await connect();
  openPageSession(wire.main, 't').catch(() => {});
  await expect.poll(() => sent()).toHaveLength(1);
  far.send(`{"id":${sent()[0]!.id},"result":{"a":"${'a'.repeat(100_000)}","b":nothing}}`);
  expect(await wire.ended).toBe('dropped');
});

describe('a target that waits', () => {
  /** A library, and our client that prepares targets. */
  async function prepare(answer: (command: Received) => object | undefined = () => ({ result: INFO })) {
    const { shared, how, connect } = await play();
    how.answer = answer;
    const library = await connect();
    const own = await connect('own');
    shared.waiting.waitFor({ isMeant: () => true, prepare: () => {} }, () => cdp);
    shared.stack.addLimits(shared.waiting.layer);
    const cdp: CdpClient = new CdpClient(own.wire.main, shared.waiting.listeners);
    const resumed = () => own.sent().filter(({ method }) => method === 'Runtime.runIfWaitingForDebugger');
    return { shared, library, own, resumed };
  }
  const letsWait = (client: { send(text: string): void }) => {
    const params = { autoAttach: true, waitForDebuggerOnStart: true, flatten: true };
    client.send(JSON.stringify({ id: 1, method: 'Target.setAutoAttach', params }));
  };

  it('does not tell a client of a page whose end it has received', async () => {
    let resume = () => {};
    const { library, own } = await prepare(({ id, method, sessionId }) => {
      if (method !== 'Target.setAutoAttach' || sessionId !== 'O') return { result: INFO };
      resume = () => void own.say({ id, result: {}, sessionId });
      return undefined;
    });
    await library.say(attached('S'));
    await own.say(attached('O'));
    await library.say(detached('S'));
    resume();
    await settle();
    await own.say(detached('O'));
    expect(library.seen.map(({ method }) => method)).toEqual(['Target.detachedFromTarget']);
  });

  it('does not wait for a client whose auto-attach the browser has refused', async () => {
    const error = { code: -32_000, message: 'Only flatten protocol is supported' };
    const { library, own, resumed } = await prepare(({ id }) => (id === 1 ? { error } : { result: {} }));
    letsWait(library.wire.main);
    await expect.poll(() => library.seen).toEqual([{ id: 1, error }]);
    await own.say(attached('O'));
    // It waits 5 s for a client that lets it wait.
    await expect.poll(resumed, { timeout: 4000 }).toHaveLength(1);
  });

  it(
    'waits no longer for a client when the target is closed, or the client is late',
    { timeout: 20_000 },
    async () => {
      const { shared, library, own, resumed } = await prepare();
      letsWait(library.wire.main);
      await settle();
      await own.say(...Array.from({ length: 50 }, (_, index) => attached(`O${index}`, `t${index}`)));
      await own.say(...Array.from({ length: 49 }, (_, index) => detached(`O${index + 1}`)));
      const looked = vi.spyOn(shared.sessions, 'all');
      await expect
        .poll(() => resumed().map(({ sessionId }) => sessionId), { timeout: 10_000 })
        .toEqual(['O0']);
      await settle();
      looked.mockClear();
      await own.say(detached('O0'));
      expect(looked).not.toHaveBeenCalled();
    },
  );

  it('says at once that a target can not be prepared', async () => {
    const error = { code: -32_601, message: 'not found' };
    const { shared, own, resumed } = await prepare(({ method }) =>
      method === 'Target.setAutoAttach' ? { error } : { result: INFO },
    );
    const failed = shared.waiting.ready('t').catch((reason: Error) => reason.message);
    await own.say(attached('O'));
    expect(await failed).toBe('not found');
    expect(resumed()).toEqual([]);
  });
});
