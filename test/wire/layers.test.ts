import { beforeEach, expect, it, vi } from 'vitest';
import type { WebSocket } from 'ws';
import { CdpClient } from '../../src/wire/cdp-client.js';
import { contentOf, readEvent, readMessage } from '../../src/wire/message.js';
import { looking, type Layer } from '../../src/wire/layer.js';
import type { Client } from '../../src/wire/client.js';
import type { Wire } from '../../src/wire/wire.js';
import { PlayedBrowser, settle } from '../support/played-browser.js';

let browser: PlayedBrowser;
let wire: Wire;
let socket: Client;
let far: WebSocket;
/** What the library receives, and the names of what was dropped. */
let seen: string[];
let dropped: string[];

beforeEach(async () => {
  browser = await PlayedBrowser.start();
  ({ wire, socket, client: far } = await browser.connect());
  browser.onText = () => {};
  seen = [];
  dropped = [];
  Object.assign(wire.shared, { onMalformed: (name: string) => dropped.push(name) });
  socket.onMessage = (data) => void seen.push(String(data));
  return async () => {
    socket.cut('closed-by-us');
    await browser[Symbol.asyncDispose]();
  };
});

const TARGET = { targetId: 't', type: 'page', url: 'about:blank' };

function add(...layers: readonly Omit<Layer, 'name'>[]): void {
  wire.shared.stack.add(...layers.map((one) => ({ name: 'a test', ...one })));
}

function addLimit(limit: Omit<Layer, 'name'>): void {
  wire.shared.stack.addLimits({ name: 'a test', ...limit });
}

function command(id: number, method: string, params: object, more: object = {}): string {
  return JSON.stringify({ id, method, params, ...more });
}

const received = () => browser.received.map((text) => JSON.parse(text) as Record<string, unknown>);

it('answers a command with an error when a feature refuses its result, and keeps the connection', async () => {
  addLimit({
    commands: {
      'Target.createTarget': async (_command, next) => {
        await next();
        throw new Error('It is not yours.');
      },
    },
  });
  socket.send(command(1, 'Target.createTarget', { url: 'about:blank' }, { sessionId: 's' }));
  // The empty id means no session.
  socket.send(command(2, 'Target.createTarget', { url: 'about:blank' }, { sessionId: '' }));
  await expect.poll(() => received()).toHaveLength(2);
  expect(received().map(({ sessionId }) => sessionId)).toEqual(['s', undefined]);
  far.send(JSON.stringify({ id: 1, result: { targetId: 't' }, sessionId: 's' }));
  far.send(JSON.stringify({ id: 2, result: { targetId: 't' } }));
  await expect.poll(() => seen).toHaveLength(2);
  const error = { code: -32_000, message: 'It is not yours.' };
  expect(seen.map((text) => JSON.parse(text))).toEqual([
    { id: 1, sessionId: 's', error },
    { id: 2, error },
  ]);
});

it('gives its own commands ids that no client can guess', async () => {
  const ids = new Set<number>();
  for (let count = 0; count < 20; count++) wire.own.send('Browser.getVersion').catch(() => {});
  await expect.poll(() => received()).toHaveLength(20);
  const all = received().map(({ id }) => id as number);
  for (const id of all) for (const other of all) ids.add(Math.abs(id - other));
  // Differences of random numbers: 0, and 190 others.
  expect(ids.size).toBeGreaterThan(180);
  expect(Math.min(...all)).toBeGreaterThan(2 ** 30);
  expect(Math.max(...all)).toBeLessThan(2 ** 31);
});

it('adds the parameters of features to each context, in their order, and leaves other commands as they are', async () => {
  const others: string[] = [];
  addLimit({
    commands: {
      'Target.createBrowserContext': (_command, next) => next({ proxyServer: 'dead', proxyBypassList: 'a' }),
      // A client of the default context gets another one.
      'Target.createTarget': ({ params }, next) =>
        next(params.browserContextId === undefined ? { browserContextId: 'of the lease' } : undefined),
    },
  });
  addLimit({
    commands: {
      'Target.createBrowserContext': ({ params }, next) => {
        others.push(String(params.proxyBypassList));
        return next();
      },
    },
  });
  socket.send(command(1, 'Target.createBrowserContext', { proxyServer: 'own', disposeOnDetach: true }));
  socket.send(command(2, 'Target.createTarget', { url: 'about:blank' }));
  socket.send(command(3, 'Target.createTarget', { url: 'about:blank', browserContextId: 'mine' }));
  // Which of two equal names a browser reads is its own.
  socket.send('{"id":4,"method":"Page.enable","method":"Target.createBrowserContext","params":{}}');
  socket.send('{"id":5,"params":{"proxyServer":"own"},"\\u006dethod":"Target.createBrowserContext"}');
  await expect.poll(() => received().length).toBe(5);
  const limited = { proxyServer: 'dead', proxyBypassList: 'a' };
  expect(received().map(({ params }) => params)).toEqual([
    { ...limited, disposeOnDetach: true },
    { url: 'about:blank', browserContextId: 'of the lease' },
    { url: 'about:blank', browserContextId: 'mine' },
    limited,
    limited,
  ]);
  expect(browser.received.filter((text) => text.split('ethod"').length !== 2)).toEqual([]);
  expect(others).toEqual(['a', 'a', 'a']);
});

it('lets a command wait for a feature, and refuses it with the error of the feature', async () => {
  let use!: (files: { files: string[] }) => void;
  const files = new Promise<{ files: string[] }>((resolve) => (use = resolve));
  add({ commands: { 'DOM.setFileInputFiles': async (_command, next) => next(await files) } });
  add({ commands: { 'input.setFiles': () => Promise.reject(new Error('no')) } });
  socket.send(command(1, 'DOM.setFileInputFiles', { files: ['here'] }, { sessionId: 's' }));
  socket.send(command(2, 'Page.enable', {}));
  socket.send(command(3, 'input.setFiles', { files: [] }));
  await expect.poll(() => received().length).toBe(1);
  use({ files: ['there'] });
  await expect.poll(() => received().map(({ id }) => id)).toEqual([2, 1]);
  expect(received()[1]).toMatchObject({ sessionId: 's', params: { files: ['there'] } });
  await expect
    .poll(() => seen.map((text) => JSON.parse(text) as unknown))
    .toEqual([{ type: 'error', id: 3, error: 'invalid argument', message: 'no' }]);
});

it('holds back an event and a response until each feature has read it', async () => {
  const order: string[] = [];
  add({
    commands: {
      'Target.createBrowserContext': async (_command, next) => {
        const answer = await next();
        await settle();
        order.push(answer.result.browserContextId);
        return answer;
      },
    },
    events: {
      'Browser.downloadProgress': async ({ params }, next) => {
        await settle();
        await next({ state: `${params.state}!` });
      },
    },
  });
  add({
    events: {
      'Browser.downloadProgress': async ({ params }, next) => {
        await settle();
        order.push(params.guid);
        await next();
      },
    },
  });
  socket.send(command(7, 'Target.createBrowserContext', {}));
  const guid = 'd0000000-0000-4000-8000-000000000001';
  far.send('{"id":7,"result":{"browserContextId":"new"}}');
  far.send(
    JSON.stringify({ method: 'Browser.downloadProgress', params: { guid, state: 'completed', more: 1 } }),
  );
  await expect.poll(() => seen.length).toBe(2);
  expect(order).toEqual(['new', guid]);
  expect(JSON.parse(seen[1]!)).toEqual({
    method: 'Browser.downloadProgress',
    params: { guid, state: 'completed!', more: 1 },
  });
});

it.each([
  [
    'Browser.downloadWillBegin',
    { guid: 'd0000000-0000-4000-8000-000000000001', url: null, suggestedFilename: '' },
  ],
  ['Browser.downloadWillBegin', { guid: '../../canary', url: 'https://a.example/', suggestedFilename: '' }],
  ['Browser.downloadProgress', { guid: 'd0000000-0000-4000-8000-000000000001', receivedBytes: '1' }],
  ['Target.attachedToTarget', { sessionId: 1, targetInfo: TARGET }],
  ['Target.attachedToTarget', { sessionId: 's' }],
  // Of the connection itself, in Playwright.
  ['Target.attachedToTarget', { sessionId: '', targetInfo: TARGET }],
  ['Target.detachedFromTarget', { sessionId: '' }],
  // Only libraries read these.
  ['Log.entryAdded', {}],
  ['Log.entryAdded', { entry: { level: 'error', text: 'x', timestamp: '1' } }],
  ['Page.frameNavigated', { frame: { id: 'f' } }],
  ['Audits.issueAdded', {}],
  ['script.message', { channel: 'c', data: { type: 'undefined' } }],
  ['script.realmCreated', { realm: 'r', origin: 'null', type: 'dedicated-worker' }],
  ['network.beforeRequestSent', { context: 'c', redirectCount: 0, request: { request: 'r' } }],
  ['log.entryAdded', { type: 'console', level: 'info', text: 'x', source: { realm: 'r' } }],
  ['Runtime.consoleAPICalled', { type: 'log', executionContextId: 1, timestamp: 1, args: [null] }],
  [
    'Runtime.consoleAPICalled',
    { type: 'log', executionContextId: 1, timestamp: 1, args: [{ type: 'object', description: false }] },
  ],
  ['Runtime.consoleAPICalled', { type: 'log', executionContextId: 1, timestamp: 1, args: [{ type: 'x' }] }],
  ['Network.responseReceived', { requestId: 'r', response: null }],
  ['Log.entryAdded', { entry: { level: 'error', url: 'x'.repeat(100_000) } }],
])('drops an event %s that does not fit, and reports it', async (method, params) => {
  const got: unknown[] = [];
  const note = looking((params) => got.push(params));
  add({
    events: {
      'Browser.downloadWillBegin': note,
      'Browser.downloadProgress': note,
      'Target.attachedToTarget': note,
    },
  });
  far.send(JSON.stringify({ method, params }));
  far.send('{"method":"Page.loadEventFired","params":{}}');
  await expect.poll(() => seen).toEqual(['{"method":"Page.loadEventFired","params":{}}']);
  expect({ got, dropped }).toEqual({ got: [], dropped: [method] });
});

it('leaves an event with unknown fields to the library', async () => {
  const entry = { source: 'new', level: 'new', text: '', timestamp: 1, more: { a: 1 } };
  const text = JSON.stringify({ method: 'Log.entryAdded', params: { entry, more: null } });
  far.send(text);
  await expect.poll(() => seen).toEqual([text]);
  expect(dropped).toEqual([]);
});

const PROGRESS = 'Browser.downloadProgress';
const BEGUN = 'Browser.downloadWillBegin';
const BAD_GUID = '"params":{"guid":"../../canary","url":"","suggestedFilename":"","frameId":"f"}';
const LONG = 'x'.repeat(100_000);

it.each([
  ['twice', `{"method":"A.b",${BAD_GUID},"method":"${BEGUN}"}`],
  ['behind the parameters', `{"params":{"x":"${'x'.repeat(300)}"},${BAD_GUID},"method":"${BEGUN}"}`],
  ['in a large message', `{"method":"A.b","params":{"x":"${LONG}"},${BAD_GUID},"method":"${BEGUN}"}`],
  [
    'with escapes, in a large message',
    `{"method":"A.b","params":{"x":"${LONG}"},${BAD_GUID},"m\\u0065thod":"Browser\\u002edownloadWillBegin"}`,
  ],
  ['with an escape', `{"m\\u0065thod":"${BEGUN}",${BAD_GUID}}`],
  ['in a response', `{"id":7,"result":{},"id":0,"method":"${BEGUN}",${BAD_GUID}}`],
  [
    'in an awaited response',
    `{"id":8,"result":{"browserContextId":"c"},"id":0,"method":"${BEGUN}",${BAD_GUID}}`,
  ],
])('reads an event whose name is written %s, as its receiver does', async (_how, text) => {
  add({
    events: { [BEGUN]: (_event, next) => next() },
    commands: { 'Target.createBrowserContext': (_command, next) => next() },
  });
  socket.send(command(8, 'Target.createBrowserContext', {}));
  far.send(text);
  far.send('{"method":"Page.loadEventFired","params":{}}');
  await expect.poll(() => seen).toEqual(['{"method":"Page.loadEventFired","params":{}}']);
  // No command has the id 0.
  expect(dropped).toEqual(text.includes('"id":0') ? [] : [BEGUN]);
});

it.each(['x', 'null', '[]', '1'])(
  'drops a call of the function of Playwright in pages that Playwright can not read: %s',
  async (payload) => {
    add({ events: { 'Runtime.bindingCalled': (_event, next) => next() } });
    const call = (name: string, text: string) =>
      JSON.stringify({
        method: 'Runtime.bindingCalled',
        params: { name, payload: text, executionContextId: 1 },
      });
    const others = [call('__playwright__binding__', '{"name":"f"}'), call('mine', payload)];
    for (const text of [call('__playwright__binding__', payload), ...others]) far.send(text);
    await expect.poll(() => seen).toEqual(others);
    expect(dropped).toEqual(['Runtime.bindingCalled']);
  },
);

it('ends the connection after a message that is too deep to be changed', async () => {
  add({ events: { [PROGRESS]: (_event, next) => next({ state: 'canceled' }) } });
  const guid = 'd0000000-0000-4000-8000-000000000001';
  const deep = '['.repeat(30_000) + ']'.repeat(30_000);
  far.send(`{"method":"${PROGRESS}","params":{"guid":"${guid}","state":"completed","deep":${deep}}}`);
  expect(await socket.ended).toBe('dropped');
  expect(seen).toEqual([]);
});

it.each([
  ['levels', '['.repeat(100_000) + ']'.repeat(100_000)],
  ['values', `[${'[],'.repeat(400_000)}0]`],
])('drops an event of a page that has too many %s to be read, and reports it', async (_what, args) => {
  far.send(`{"method":"Runtime.consoleAPICalled","params":{"type":"log","args":${args}}}`);
  far.send('{"method":"Page.loadEventFired","params":{}}');
  await expect.poll(() => seen).toEqual(['{"method":"Page.loadEventFired","params":{}}']);
  expect(dropped).toEqual(['Runtime.consoleAPICalled']);
});

it('passes on a large response without reading its content', async () => {
  const parse = vi.spyOn(JSON, 'parse');
  const value = `[${'{"id":1,"type":"\\"}","method":"A.b","sessionId":"S"},'.repeat(10_000)}0]`;
  const text = `{"id":8,"result":{"result":{"type":"object","value":${value}}}}`;
  socket.send(command(8, 'Runtime.evaluate', {}));
  far.send(text);
  await expect.poll(() => seen.length).toBe(1);
  expect(seen[0] === text).toBe(true);
  expect(Math.max(...parse.mock.calls.map(([one]) => one.length))).toBeLessThan(1000);
  parse.mockRestore();
});

it.each([
  '[]',
  '{"method":1}',
  '{"method":"error","params":{}}',
  '{"method":"Target.attachedToTarget","params":null}',
  '{"id":"1","method":"Target.attachedToTarget"}',
])('ends the connection after a message that is none: %s', async (text) => {
  add({ events: { 'Target.attachedToTarget': (_event, next) => next() } });
  far.send(text);
  far.send('{"method":"Target.attachedToTarget","params":null}');
  expect(await socket.ended).toBe('dropped');
  expect(seen.filter((one) => one.includes('attachedToTarget'))).toEqual([]);
});

it.each([
  '{"type":"event","id":7}',
  '{"type":"event","id":7,"method":"browsingContext.load","params":{}}',
  '{"id":7,"method":"Target.attachedToTarget","params":{}}',
  '{"id":7,"error":{"message":{"toString":1}}}',
  '{"id":7,"error":{"message":"no","data":{"toString":1}}}',
  '{"type":"error","id":7,"error":{"toString":1},"message":"no"}',
  '{"type":"error","id":7,"error":"no","message":{"toString":1}}',
  '{"type":"error","id":7,"error":"no","message":"no","stacktrace":{"toString":1}}',
  '{"type":"error","error":"no","message":{"toString":1}}',
])(
  'ends the connection after an answer that makes a library throw an uncaught exception: %s',
  async (text) => {
    socket.send(command(7, 'Page.enable', {}));
    far.send(text);
    expect(await socket.ended).toBe('dropped');
    expect(seen).toEqual([]);
  },
);

it.each([
  '{"id":1,"result":{}}',
  '{"id":7,"result":{},"id":1}',
  '{"id":7,"result":{},"sessionId":"another"}',
  '{"sessionId":"S"}',
  '{"id":null,"result":{}}',
  '{"type":"event","params":{}}',
  '{"type":"event","method":"goog:cdp.Page.enable"}',
  '{}',
])('drops a message after which a library would throw an uncaught exception: %s', async (text) => {
  socket.send(command(7, 'Page.enable', {}));
  const response = '{"id":7,"result":{}}';
  for (const one of [text, response, response, text]) far.send(one);
  far.send('{"method":"Page.loadEventFired","params":{}}');
  await expect.poll(() => seen).toEqual([response, '{"method":"Page.loadEventFired","params":{}}']);
});

it('has several clients: a recorder that pauses and a relay see neither the library nor each other', async () => {
  let sessions = 0;
  browser.onText = (text, page) => {
    const { id, method, params, sessionId } = JSON.parse(text) as {
      id: number;
      method: string;
      params: { targetId?: string };
      sessionId?: string;
    };
    const own = sessionId === undefined ? {} : { sessionId };
    if (method === 'Target.attachToBrowserTarget')
      return page.send(JSON.stringify({ id, result: { sessionId: `session${++sessions}` } }));
    if (method === 'Target.attachToTarget') {
      const child = { sessionId: `child of ${sessionId}`, targetInfo: TARGET };
      page.send(JSON.stringify({ method: 'Target.attachedToTarget', params: child, ...own }));
      return page.send(JSON.stringify({ id, result: { sessionId: child.sessionId }, ...own }));
    }
    const frame = { id: `${params.targetId} ${sessionId}`, url: 'about:blank' };
    const result = { frameTree: { frame } };
    page.send(JSON.stringify({ id, result, ...own }));
    page.send(JSON.stringify({ method: 'Page.loadEventFired', params: {}, ...own }));
  };
  const [recorder, relayed] = [await wire.openSession('own'), await wire.openSession('further')];
  const cdp = new CdpClient(recorder);
  const child = await cdp.attach('t');
  const texts: string[] = [];
  relayed.onMessage = (data) => void texts.push(String(data));
  // A client can have the ids of another one.
  relayed.send('{"id":1,"method":"Page.enable","params":{}}');
  socket.send('{"id":1,"method":"Page.enable","params":{}}');
  expect((await cdp.send('Page.getFrameTree', {}, child)).frameTree.frame.id).toBe(`undefined ${child}`);
  await expect.poll(() => texts.length).toBe(2);
  expect(texts[0]).toContain('"id":1');
  expect(texts.join()).not.toContain('sessionId');
  expect(seen.map((text) => JSON.parse(text) as { sessionId?: string })).toEqual([
    expect.objectContaining({ id: 1 }),
    expect.objectContaining({ method: 'Page.loadEventFired' }),
  ]);
  // Nobody leaves a session by an empty id, and nothing else of a message changes.
  relayed.send('{"id":3,"method":"Page.enable","params":{},"sessionId":""}');
  far.send('{ "method":"A.b","params":{"é":1},"sessionId":"session2"}');
  await expect.poll(() => texts).toContain('{ "method":"A.b","params":{"é":1}}');
  await expect
    .poll(() => received())
    .toContainEqual(expect.objectContaining({ id: 3, sessionId: 'session2' }));
  // The recorder pauses: its session ends, and those of the others stay.
  recorder.cut();
  await expect(cdp.send('Page.enable')).rejects.toThrow('ended');
  relayed.send('{"id":2,"method":"Page.enable","params":{}}');
  await expect.poll(() => texts.some((text) => text.includes('"id":2'))).toBe(true);
  const again = new CdpClient(await wire.openSession('own'));
  expect(await again.attach('t')).toBe('child of session3');
});

it('puts a layer at its place, whenever it is added', async () => {
  const passed: string[] = [];
  const layer = (name: string): Layer => ({
    name,
    commands: { '*': (_command, next) => (passed.push(name), next()) },
  });
  const { stack } = wire.shared;
  stack.add(layer('one'));
  stack.addFirst(layer('at the clients'));
  // A layer that only sees all commands is no limit.
  expect(stack.isLimit).toBe(false);
  stack.addLimits(layer('at the browser'));
  stack.add(layer('another'));
  socket.send(command(1, 'Page.enable', {}));
  await expect.poll(() => received()).toHaveLength(1);
  expect(passed).toEqual(['at the clients', 'one', 'another', 'at the browser']);
});

it('ends the connection at a large answer that no library can read, also if a layer has seen it', async () => {
  add({ commands: { 'Page.navigate': (_command, next) => next() } });
  socket.onMessage = (data) => void JSON.parse(String(data));
  browser.onText = (_text, page) => page.send(`{"id":1,"result":{"a":"${'a'.repeat(100_000)}","b":nothing}}`);
  socket.send(command(1, 'Page.navigate', { url: 'about:blank' }));
  expect(await wire.ended).toBe('dropped');
});

it('sends a large body of a client that has a session there', async () => {
  const sessionOf = new Map<unknown, unknown>();
  browser.onText = (text, page) => {
    const { id, sessionId, method } = JSON.parse(text) as Record<string, unknown>;
    if (method === 'Fetch.fulfillRequest') sessionOf.set(sessionId, text.length);
    const result = { sessionId: 'own' };
    page.send(JSON.stringify({ id, result, sessionId }));
  };
  const cdp = await wire.openOwn();
  await cdp.sendWithBody('Fetch.fulfillRequest', { requestId: 'r' }, 'body', [Buffer.alloc(4_000_000)]);
  expect([...sessionOf.keys()]).toEqual(['own']);
});

it('parses each message once, however many readers it has', async () => {
  const parsed = vi.spyOn(JSON, 'parse');
  addLimit({
    commands: { 'Target.createTarget': async (_command, next) => (await next()).with({ more: 1 }) },
  });
  add(
    { commands: { 'Target.createTarget': (_command, next) => next({ url: 'about:blank' }) } },
    { events: { 'Target.detachedFromTarget': (_event, next) => next({}) } },
  );
  const count = () => parsed.mock.calls.filter(([text]) => text.includes('the mark')).length;
  browser.onText = (text, page) => {
    if (text.includes('getTargetInfo')) return page.send(text.replace('"params"', '"result"'));
    if (text.includes('createTarget')) page.send('{"id":1,"result":{"targetId":"the mark"}}');
  };
  socket.send(command(1, 'Target.createTarget', { url: 'the mark' }));
  await expect.poll(() => seen).toEqual(['{"id":1,"result":{"targetId":"the mark","more":1}}']);
  expect(count()).toBe(2);
  far.send('{"method":"Target.detachedFromTarget","params":{"sessionId":"the mark"}}');
  await expect.poll(() => seen).toHaveLength(2);
  expect(count()).toBe(3);
  const targetInfo = { ...TARGET, title: 'the mark' };
  expect(await wire.own.send('Target.getTargetInfo', { targetInfo })).toEqual({ targetInfo });
  expect(count()).toBe(4);
  parsed.mockRestore();
});

it('delivers an error of WebDriver BiDi that has no id', async () => {
  const text = '{"type":"error","id":null,"error":"invalid argument","message":"no"}';
  far.send(text);
  await expect.poll(() => seen).toEqual([text]);
});

it.each([
  ['once, not as texts', (body: object, parts: object) => ({ ...body, ...parts }), true],
  ['also in another order of its fields', (body: object, parts: object) => ({ ...parts, ...body }), false],
])('reads a large body of a paused request %s', (_how, join, isOnce) => {
  const bytes = Buffer.alloc(3_000_000, 'a "quoted", escaped \\ body: "postData":"');
  const parts = { postDataEntries: [{ bytes: bytes.toString('base64') }, {}, { bytes: '' }] };
  const head = { url: 'http://a/', method: 'POST', headers: { postData: 'x' } };
  const request = { ...head, ...join({ postData: String(bytes), hasPostData: true }, parts) };
  const paused = {
    method: 'Fetch.requestPaused',
    params: { requestId: '1', request, frameId: 'frame' },
    sessionId: 's',
  };
  const { params, sessionId } = contentOf(readMessage(Buffer.from(JSON.stringify(paused))));
  const read = readEvent('Fetch.requestPaused', params).request.postDataEntries!;
  const [first, second, third] = read.map((part) =>
    typeof part.bytes === 'string' ? Buffer.from(part.bytes, 'base64') : part.bytes,
  );
  expect([bytes.equals(first!), second, third?.length, sessionId]).toEqual([true, undefined, 0, 's']);
  const { postData } = params!['request'] as { postData: string };
  expect([postData === '', typeof read[0]!.bytes]).toEqual([isOnce, isOnce ? 'object' : 'string']);
});

it('decodes no large body of a paused request for a feature', async () => {
  const bodies: unknown[] = [];
  add({
    events: {
      'Fetch.requestPaused': ({ params: { request } }, next) => {
        bodies.push(request.postDataEntries, request.url);
        return next();
      },
    },
  });
  const body = Buffer.alloc(100_000, 'a body');
  const parts = { hasPostData: true, postDataEntries: [{ bytes: body.toString('base64') }] };
  const request = { url: 'http://a/', method: 'POST', headers: {}, postData: String(body), ...parts };
  const text = JSON.stringify({
    method: 'Fetch.requestPaused',
    params: { requestId: '1', request, frameId: 'frame' },
  });
  far.send(text);
  await expect.poll(() => seen).toEqual([text]);
  expect(bodies).toEqual([undefined, 'http://a/']);
});
