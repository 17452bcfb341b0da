import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTcpServer, type AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { PassThrough } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { WebSocketServer } from 'ws';
import { parsedMessage, readEvent } from '../../../src/wire/message.js';
import { Sessions } from '../../../src/wire/sessions.js';
import { explainRefusal } from '../../../src/features/exposed-network/expose-network.js';
import { type EventStream, EventStreams } from '../../../src/features/exposed-network/exposed-events.js';
import { PageBridge } from '../../../src/features/exposed-network/bridge.js';
import { ExposedHosts } from '../../../src/features/exposed-network/exposed-hosts.js';
import {
  Bodies,
  ByteBudget,
  Share,
  type StreamLimits,
  TooLargeError,
} from '../../../src/features/exposed-network/response-bodies.js';
import type { Context } from '../../../src/features/exposed-network/context.js';
import {
  type ExposedRequest,
  ExposedSender,
  type Received,
} from '../../../src/features/exposed-network/exposed-request.js';
import { ExposedStreams } from '../../../src/features/exposed-network/exposed-streams.js';
import { ExposedWebSockets } from '../../../src/features/exposed-network/exposed-websocket.js';
import { RequestBodies, type Sources } from '../../../src/features/exposed-network/request-bodies.js';
import { Targets } from '../../../src/features/exposed-network/targets.js';
import type { CdpClient, OwnClient } from '../../../src/wire/cdp-client.js';
import { WaitingTargets } from '../../../src/wire/waiting-targets.js';
import type { PartMessage } from '../../../src/features/exposed-network/page-fetch.js';
import { faultInHosts } from '../../../src/shared/hosts.js';

/** The rules, the URLs that they match, and others. */
const RULES: [rules: string, exposed: string[], others: string[]][] = [
  [
    'localhost:3000',
    [
      'http://localhost:3000/',
      'https://localhost:3000/a?b',
      'ws://localhost:3000/hmr',
      'http://a:b@localhost:3000/',
    ],
    [
      'http://localhost/',
      'http://localhost:30001/',
      'http://localhost:3000.example/',
      'http://a.localhost:3000/',
      'http://other.example/?http://localhost:3000/',
      'http://localhost:3000@other.example/',
    ],
  ],
  ['shop.test', ['http://shop.test/', 'http://shop.test:81/', 'wss://shop.test/'], ['http://a.shop.test/']],
  ['shop.test:80', ['http://shop.test/', 'https://shop.test:80/', 'ws://shop.test/'], ['https://shop.test/']],
  [
    'shop.test:443',
    ['https://shop.test/', 'wss://shop.test/'],
    ['http://shop.test/', 'https://shop.test:80/'],
  ],
  [
    '*.test.internal',
    ['http://a.test.internal/', 'http://a.b.test.internal:8080/'],
    ['http://test.internal/', 'http://other.example/a.test.internal/'],
  ],
  ['.internal, x.*.com', ['http://a.internal/', 'http://x.y.com/'], ['http://internal/', 'http://y.com/']],
  [
    '<loopback>',
    [
      'http://localhost/',
      'http://a.localhost:1/',
      'https://127.0.0.1/',
      'http://127.9.9.9:9/',
      'http://[::1]:1/',
    ],
    ['http://127.example/', 'http://127.0.0.1.example/', 'http://localhost.example/', 'http://[::2]/'],
  ],
  ['<loopback>:3000', ['http://[::1]:3000/', 'http://127.0.0.1:3000/'], ['http://127.0.0.1/']],
  ['*', ['http://a/', 'https://10.0.0.1:8/', 'ws://[fe80::1]/'], ['data:text/html,', 'file:///http://a/']],
  ['*:8080', ['http://10.0.0.1:8080/', 'http://a:8080/'], ['http://a/']],
  ['10.0.0.1,[0:0::1]:99', ['http://10.0.0.1/', 'http://[::1]:99/'], ['http://10.0.0.10/', 'http://[::1]/']],
  // As in Playwright, a star in a name matches no address.
  ['*1', ['http://host1/'], ['http://10.0.0.1/']],
  ['Bücher.example', ['http://xn--bcher-kva.example/'], ['http://b.example/']],
];

const EVENTS = new ExposedHosts('shop.test').read('http://shop.test/events', 'request')!;

describe.each(RULES)('%s', (rules, exposed, others) => {
  const { pattern, cdpPatterns } = new ExposedHosts(rules);
  /** As Chromium matches them. */
  const asRegExp = (text: string) =>
    new RegExp(`^${text.replaceAll(/[.+^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`);
  const isPaused = (url: string) => cdpPatterns.some((each) => asRegExp(each).test(url));

  it.each(exposed)('exposes %s', (url) => {
    expect(faultInHosts(rules)).toBeUndefined();
    expect(pattern.test(url)).toBe(true);
    if (url.startsWith('http')) expect(isPaused(url)).toBe(true);
  });

  it.each(others)('does not expose %s', (url) => expect(pattern.test(url)).toBe(false));
});

it('pauses no request to another host, except for a path that looks like a host', () => {
  expect(new ExposedHosts('localhost:3000,shop.test:443').cdpPatterns).toEqual([
    'http://localhost:3000/*',
    'http://*@localhost:3000/*',
    'https://localhost:3000/*',
    'https://*@localhost:3000/*',
    'http://shop.test:443/*',
    'http://*@shop.test:443/*',
    'https://shop.test/*',
    'https://*@shop.test/*',
  ]);
});

it.each([
  ['', "has the rule '' at character 1, which is no host"],
  ['localhost,', "has the rule '' at character 11, which is no host"],
  ['a.test, http://b.test', "has the rule 'http://b.test' at character 9, which is no host"],
  ['a@localhost', 'which is no host'],
  ['localhost/path', 'which is no host'],
  ['::1', 'which is no host'],
  ['[::g]', 'which is no host'],
  ['3000', 'which is no host'],
  ['<local>', 'which is no host'],
  ['a b', 'which is no host'],
  ['localhost:0', 'whose port must be 1 to 65535'],
  ['localhost:65536', 'whose port must be 1 to 65535'],
  [3000, "must be a list of hosts, such as 'localhost:3000', not 3000"],
])('refuses %j', (rules, fault) => expect(faultInHosts(rules)).toContain(fault));

it.each([
  ['ws://10.0.0.9:80\\path?x=@localhost:3000/', 'websocket'],
  ['ws://10.0.0.9?@localhost:3000/', 'websocket'],
  ['ws://10.0.0.9#@localhost:3000/', 'websocket'],
  ['http://10.0.0.9?@localhost:3000/', 'request'],
  ['http://10.0.0.9\\@localhost:3000/', 'request'],
  ['ws://localhost:3000/', 'request'],
  ['http://localhost:3000/', 'websocket'],
  ['file://localhost:3000/', 'request'],
  ['nothing', 'request'],
] as const)('does not expose %s as a %s: the parsed URL is tested', (url, kind) => {
  expect(new ExposedHosts('localhost:3000').read(url, kind)).toBeUndefined();
});

it.each([
  ['ws://LOCALHOST:3000', 'ws://localhost:3000/'],
  ['ws:\\\\localhost:3000\\a', 'ws://localhost:3000/a'],
])('opens %s as it was parsed', (url, href) => {
  expect(new ExposedHosts('localhost:3000').read(url, 'websocket')).toBe(href);
});

describe('the error of a refused connection', () => {
  const ELSEWHERE = { isElsewhere: true };

  function explained(address: string, browser = ELSEWHERE, exposed?: string): string {
    const error = new Error(`page.goto: net::ERR_CONNECTION_REFUSED at ${address}`);
    explainRefusal(error, browser, exposed === undefined ? undefined : new ExposedHosts(exposed));
    return error.message;
  }

  it('says once, in the message and the stack of the same error, that localhost is that of the browser', () => {
    const error = new Error('net::ERR_CONNECTION_REFUSED at http://localhost:3000/a');
    explainRefusal(error, ELSEWHERE);
    const { message, stack } = error;
    expect(message).toMatch(/another machine.*set exposeNetwork: 'localhost:3000'\.$/);
    expect(stack).toContain(message);
    explainRefusal(error, ELSEWHERE);
    expect(error).toMatchObject({ message, stack });
  });

  it.each([
    ['a browser of this machine', 'http://localhost:3000/', { isElsewhere: false }, undefined],
    ['another address', 'http://shop.example/', ELSEWHERE, undefined],
    ['an exposed address: its server is down', 'http://localhost:3000/', ELSEWHERE, 'localhost'],
  ])('says nothing for %s', (_what, address, browser, exposed) => {
    expect(explained(address, browser, exposed)).not.toContain('exposeNetwork');
  });

  it.each([
    { exposed: 'localhost:81', address: 'http://127.0.0.1:81/', host: '127.0.0.1:81' },
    { exposed: '127.0.0.1:81', address: 'http://localhost:81/a', host: 'localhost:81' },
    { exposed: 'localhost:81', address: 'http://[::1]:81/', host: '[::1]:81' },
  ])(
    'names $host, which is missing beside $exposed, wherever the browser runs',
    ({ exposed, address, host }) => {
      for (const isElsewhere of [true, false])
        expect(explained(address, { isElsewhere }, exposed)).toContain(
          `exposeNetwork ('${exposed}') does not contain ${host}. Set exposeNetwork: '${exposed},${host}', or '<loopback>'`,
        );
    },
  );

  it('is explained in the plain object of a test runner, too', () => {
    const message = 'Error: page.goto: net::ERR_CONNECTION_REFUSED at http://localhost:3000/';
    const error = { message, stack: `${message}\n    at shop.spec.ts:1:1` };
    explainRefusal(error, ELSEWHERE);
    expect(error.message).toContain("set exposeNetwork: 'localhost:3000'.");
    expect(error.stack).toContain(error.message);
  });
});

describe('a request of an exposed URL', () => {
  const TEXT = 'The same sentence, many times. '.repeat(1000);
  const LIMITS = { silence: 200, total: 400, continued: 100 };

  const opened: (() => unknown)[] = [];
  afterEach(() => opened.splice(0).forEach((close) => close()));

  interface Changes extends Partial<ExposedRequest> {
    canContinue?(this: void): boolean;
    /** Whether the body is not read: it is the rest. */
    keeps?(received: Received): boolean;
  }

  async function serve(onRequest: RequestListener, limits?: StreamLimits) {
    const server = createServer(onRequest);
    let connections = 0;
    server.on('connection', () => connections++);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const sender = new ExposedSender();
    const bodies = new Bodies(limits);
    opened.push(
      () => sender.close(),
      () => server.closeAllConnections(),
      () => server.close(),
    );
    const { port } = server.address() as AddressInfo;
    const url = new ExposedHosts('127.0.0.1').read(`http://127.0.0.1:${port}/`, 'request')!;
    const request = { url, method: 'GET', headers: {}, body: undefined };
    const send = async (
      { keeps, canContinue = () => false, ...changes }: Changes = {},
      { isKept = false } = {},
    ) => {
      const { signal } = new AbortController();
      const received = await sender.send({ ...request, ...changes }, signal);
      const unread = { ...received, body: [], isCut: false, rest: received.stream, free: () => {} };
      const response = keeps?.(received) ? unread : await bodies.read(received, canContinue, signal);
      if (!isKept) response.free();
      return { ...response, body: Buffer.concat(response.body) };
    };
    return { server, send, connections: () => connections };
  }

  const ENCODINGS: [name: string, body: Buffer][] = [
    ['gzip', gzipSync(TEXT)],
    ['identity, gzip', gzipSync(TEXT)],
    ['br', brotliCompressSync(TEXT)],
    ['deflate', deflateSync(TEXT)],
    ['deflate', deflateRawSync(TEXT)],
    ['gzip, br', brotliCompressSync(gzipSync(TEXT))],
  ];

  it.each(ENCODINGS)('decodes %s', async (encoding, body) => {
    const { send } = await serve((_request, response) =>
      response.writeHead(200, { 'Content-Encoding': encoding, 'Content-Length': body.length }).end(body),
    );
    const response = await send();
    expect(String(response.body)).toBe(TEXT);
  });

  it('passes an unknown encoding, a length without an encoding, and each cookie as it is, byte by byte', async () => {
    const { send } = await serve(({ url }, response) => {
      response.setHeader('X-Raw', Buffer.from('ü').toString('latin1'));
      response.setHeader('Set-Cookie', ['a=1; HttpOnly', 'b=2']);
      response
        .writeHead(200, 'Fine', { 'Content-Length': 3, ...(url === '/' && { 'Content-Encoding': 'odd' }) })
        .end(Buffer.from('abc'));
    });
    const response = await send();
    expect(response).toMatchObject({ status: 200, reason: 'Fine', body: Buffer.from('abc'), isCut: false });
    expect(response.headers.filter((header) => !/^date/i.test(header))).toEqual([
      'X-Raw: Ã¼',
      'Set-Cookie: a=1; HttpOnly',
      'Set-Cookie: b=2',
      'Content-Length: 3',
      'Content-Encoding: odd',
      'Connection: keep-alive',
      'Keep-Alive: timeout=5',
    ]);
  });

  it('forwards the headers of the page, but none of its connection, and follows no redirect', async () => {
    let seen: object = {};
    const { send } = await serve(({ headers }, response) => {
      seen = headers;
      response.writeHead(302, { location: '/elsewhere' }).end();
    });
    const headers = {
      Cookie: 'a=1',
      Connection: 'close',
      'Proxy-Authorization': 'secret',
      Host: 'other',
      Origin: 'http://a',
    };
    expect(await send({ method: 'POST', body: Buffer.from('abc'), headers })).toMatchObject({ status: 302 });
    expect(seen).toEqual({
      'accept-encoding': expect.stringMatching(/^gzip, deflate, br/),
      'accept-language': 'en-US,en;q=0.9',
      cookie: 'a=1',
      origin: 'http://a',
      host: expect.stringMatching(/^127\.0\.0\.1:/),
      connection: 'keep-alive',
      'content-length': '3',
    });
  });

  it.each([
    ['a response that is silent', {}, 'beginning'],
    ['a compressed response that is silent', { headers: { zip: '1' } }, 'beginning'],
    ['a response that never ends', { headers: { tick: '1' } }, /^(tick)+$/],
  ])('cuts %s, and returns its beginning', async (_name, changes, text) => {
    let isGone = false;
    const { send } = await serve(({ headers }, response) => {
      response.on('close', () => (isGone = true));
      if (headers['zip']) {
        response.writeHead(200, { 'content-encoding': 'gzip' });
        return response.write(gzipSync(text as string).subarray(0, -8));
      }
      if (!headers['tick']) return response.write(text);
      const timer = setInterval(() => response.write('tick'), 20);
      return response.on('close', () => clearInterval(timer));
    }, LIMITS);
    const response = await send(changes);
    expect(response.isCut).toBe(true);
    expect(String(response.body)).toMatch(text);
    await expect.poll(() => isGone).toBe(true);
  });

  it('keeps a stream of events whose server asks for a pause beyond every timer', async () => {
    const { signal } = new AbortController();
    const events = new PassThrough();
    const unread = { status: 200, reason: '', headers: [], sent: {}, body: [], isCut: false, free: () => {} };
    const streams = new EventStreams(signal);
    const asked = { frameId: 'frame', url: EVENTS, source: 'one' };
    const textOf = async (stream: EventStream) => String((await stream.next(signal)).body);
    events.write('retry: 9999999999\ndata: first\n\n');
    const stream = streams.begin(asked, { ...unread, rest: events });
    expect(await textOf(stream)).toContain('data: first');
    await setTimeout(50);
    expect(streams.take(asked)).toBe(stream);
    events.write('data: second\n\n');
    expect(await textOf(stream)).toContain('data: second');
    events.end();
    expect(await textOf(stream)).toBe('retry: 9999999999\n\n');
    await setTimeout(50);
    expect(streams.take(asked)).toBe(stream);
    stream.close();
  });

  it.each([
    [
      'lines that end with LF only, and a folded header',
      'HTTP/1.1 200 Fine\nA: 1\n  2\n\nbody',
      '200 A: 1  2',
    ],
    [
      'a header with a null byte, which would be two headers',
      'HTTP/1.1 200 OK\r\nA: 1\0B: 2\r\n\r\nbody',
      'null byte',
    ],
    [
      'a change of the protocol, after which there is no response',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n',
      'without a response',
    ],
    [
      'more encodings than memory should be used for',
      `HTTP/1.1 200 OK\r\nContent-Encoding: ${'gzip, '.repeat(5)}gzip\r\n\r\nbody`,
      'more than 5 encodings',
    ],
  ])('reads a response as a browser does: %s', async (_what, message, found) => {
    const server = createTcpServer((socket) => socket.once('data', () => socket.end(message)));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const url = new ExposedHosts('127.0.0.1').read(`http://127.0.0.1:${port}/`, 'request')!;
    const request = { url, method: 'GET', headers: {}, body: undefined };
    const response = new ExposedSender().send(request, new AbortController().signal);
    const shown = await response.then(({ status, headers }) => `${status} ${headers.join()}`, String);
    expect(shown).toContain(found);
  });

  it('keeps the id and the time of a stream of events for those that follow, and only its first mark of byte order is none', async () => {
    const { signal } = new AbortController();
    const streams = new EventStreams(signal);
    const asked = { frameId: 'frame', url: EVENTS, source: 'one' };
    const unread = { status: 200, reason: '', headers: [], sent: {}, body: [], isCut: false, free: () => {} };
    const begin = (text: string, before?: EventStream) => {
      const rest = new PassThrough();
      rest.write(text);
      return { rest, stream: streams.begin(asked, { ...unread, rest }, before) };
    };
    const next = async (stream: EventStream) => String((await stream.next(signal)).body);
    const { rest, stream } = begin('\uFEFFid: 7\nretry: 200\ndata: one\n\n');
    expect(await next(stream)).toMatch(/^id: 7/);
    rest.write('\uFEFFdata: no field\n\n');
    expect(await next(stream)).toMatch(/^\uFEFF\uFEFFdata/);
    const second = begin('data: two\n\n', stream);
    await next(second.stream);
    expect(second.stream.lastId).toBe('7');
    second.rest.end();
    expect(await next(second.stream)).toBe('retry: 200\n\n');
    stream.close();
    second.stream.close();
  });

  it('lets the server of a stream of events wait while its page takes none', async () => {
    const events = new PassThrough();
    const unread = { status: 200, reason: '', headers: [], sent: {}, body: [], isCut: false, free: () => {} };
    const asked = { frameId: 'frame', url: EVENTS, source: 'one' };
    const { signal } = new AbortController();
    const stream = new EventStreams(signal).begin(asked, { ...unread, rest: events });
    for (let count = 0; count < 30; count++) events.write(`data: ${'x'.repeat(100_000)}\n\n`);
    await expect.poll(() => events.isPaused()).toBe(true);
    expect(events.readableLength + events.writableLength).toBeGreaterThan(1_000_000);
    await stream.next(signal);
    expect(events.isPaused()).toBe(false);
    stream.close();
  });

  it('repeats a misdirected request once, over a new connection, and keeps the case of a method and of headers', async () => {
    const seen: string[] = [];
    const { send, connections } = await serve(({ method, rawHeaders }, response) => {
      seen.push(`${method} ${rawHeaders.includes('X-Odd')}`);
      response.writeHead(seen.length === 1 ? 421 : 200).end();
    });
    expect(await send({ method: 'PATCH', headers: { 'X-Odd': '1' } })).toMatchObject({ status: 200 });
    expect([seen, connections()]).toEqual([['PATCH true', 'PATCH true'], 2]);
  });

  it('has a method of any length, which an event of the browser names, but none that is not of HTTP', async () => {
    const { server, send } = await serve(({ method }, response) => response.end(method));
    server.on('connect', (_request, socket) => socket.end('HTTP/1.1 200 Connected\r\n\r\n'));
    // A page waits without an end for a request whose event is dropped.
    for (const method of [`${'A-'.repeat(5000)}B`, 'connect', 'GET /other HTTP/1.1\r\nA:']) {
      const request = { url: 'http://a/', method, headers: {} };
      const paused = readEvent('Fetch.requestPaused', { requestId: '1', frameId: 'frame', request });
      const answered = send({ method: paused.request.method }).then(({ status }) => status, String);
      expect(await answered).toEqual(method.startsWith('A') ? 400 : 'Error: The method is not one of HTTP.');
    }
  });

  it('waits for a response with a length, however long it takes', async () => {
    const { send } = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': 10 });
      let sent = 0;
      const timer = setInterval(() => {
        response.write('x');
        if (++sent === 10) clearInterval(timer);
      }, LIMITS.total / 8);
    }, LIMITS);
    expect(await send()).toMatchObject({ isCut: false, body: Buffer.from('x'.repeat(10)) });
  });

  it.each([
    ['by its length', (size: number) => ({ 'content-length': size })],
    ['when it has arrived', () => ({})],
  ])('refuses a body that CDP can not carry, %s', async (_when, headersOf) => {
    const size = 64 * 1024 * 1024 + 1;
    const headers = headersOf(size);
    const { send } = await serve((_request, response) => {
      response.writeHead(200, headers);
      response.write('content-length' in headers ? 'x' : Buffer.alloc(size));
    });
    await expect(send()).rejects.toThrow(TooLargeError);
  });

  it('lets a server wait while other bodies occupy the memory', async () => {
    const size = 50 * 1024 * 1024;
    let written = 0;
    const { send } = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': size });
      response.end(Buffer.alloc(size), () => written++);
    });
    const first = await send({}, { isKept: true });
    await send({}, { isKept: true });
    const third = send();
    const state = await Promise.race([third.then(() => 'read'), setTimeout(300, 'waits')]);
    expect([state, written]).toEqual(['waits', 2]);
    first.free();
    expect((await third).body.length).toBe(size);
  });

  it('frees the memory of a body whose server was lost while it waited in the queue', async () => {
    const size = 64 * 1024 * 1024;
    const { send, server } = await serve(({ headers }, response) => {
      response.writeHead(200, headers['named'] ? { 'content-length': size } : {});
      response.end(Buffer.alloc(size));
    });
    const named = async () => send({ headers: { named: '1' } }, { isKept: true });
    const kept = [await named(), await named()];
    const lost = [send(), send({ headers: { named: '1' } })].map((one) => one.catch((error: Error) => error));
    await setTimeout(200);
    server.closeAllConnections();
    for (const { free } of kept) free();
    for (const one of await Promise.all(lost)) expect(one).toBeInstanceOf(Error);
    // Both need all that there is.
    for (const { free } of [await named(), await named()]) free();
  });

  it('frees the memory of a body whose page was left while it waited in the queue, or can read the rest', async () => {
    const { signal } = new AbortController();
    const [whole, beginnings] = [new ByteBudget(10), new ByteBudget(10)];
    const share = new Share();
    await share.take(whole, 10, signal);
    const left = new AbortController();
    const waiting = whole.take(10, left.signal);
    left.abort('left');
    await expect(waiting).rejects.toBe('left');
    expect(share.tryGrow(beginnings, 5)).toBe(true);
    await setTimeout(0);
    expect([whole.tryTake(10), beginnings.tryTake(6), beginnings.tryTake(5)]).toEqual([true, false, true]);
    expect(share.tryGrow(beginnings, 6)).toBe(false);
    share.free();
    expect(beginnings.tryTake(5)).toBe(true);
  });

  it('refuses the body of a request that would fill the memory, while others are under way', async () => {
    const bodies = new RequestBodies();
    const sources = { kept: { sizeWith: () => undefined } } as unknown as Sources;
    const read = () => {
      const postDataEntries = [{ bytes: new Uint8Array(300 * 1024 * 1024) }];
      const request = { url: 'http://a/', method: 'POST', headers: {}, hasPostData: true, postDataEntries };
      return bodies.read({ request, frameId: 'frame' }, sources, new AbortController().signal);
    };
    const first = await read();
    expect(first.bytes?.length).toBe(300 * 1024 * 1024);
    await expect(read()).rejects.toThrow('more than 512 MB');
    first[Symbol.dispose]();
    (await read())[Symbol.dispose]();
  });

  it('leaves the rest of a body that is large, or does not end soon, to a page that can read it', async () => {
    const size = 64 * 1024 * 1024 + 1;
    const { send } = await serve(async ({ headers }, response) => {
      if (headers['named'])
        return response.writeHead(200, { 'content-length': size }).end(Buffer.alloc(size));
      if (headers['large']) return response.writeHead(200).end(Buffer.alloc(size));
      response.writeHead(200).write('beginning');
      if (headers['endless']) return undefined;
      await setTimeout(2 * LIMITS.continued);
      return response.end(' and rest');
    }, LIMITS);
    const canContinue = () => true;
    const found: unknown[] = [];
    for (const headers of [{}, { named: '1' }, { large: '1' }] as Record<string, string>[]) {
      const { body, rest, isCut } = await send({ headers, canContinue });
      const read = await buffer(rest!);
      found.push([
        isCut,
        body.length + read.length,
        String(body.subarray(0, 9)),
        String(read.subarray(0, 9)),
      ]);
    }
    const zeros = '\0'.repeat(9);
    expect(found).toEqual([
      [false, 18, 'beginning', ' and rest'],
      [false, size, '', zeros],
      [false, size, zeros, expect.any(String)],
    ]);
    // On a busy machine, the page says it later.
    for (const headers of [{ endless: '1' }, { named: '1' }] as Record<string, string>[]) {
      let asked = 0;
      const { rest: late } = await send({ headers, canContinue: () => asked++ > 0 });
      expect(late).toBeDefined();
      late!.destroy();
    }
    const { rest, body } = await send({ headers: { named: '1' }, keeps: ({ length }) => length === size });
    rest!.destroy();
    expect(body.length).toBe(0);
  });

  it('reads less of such bodies while the beginnings of others occupy the memory, and makes none wait', async () => {
    const { send } = await serve(
      (_request, response) => {
        response.write(Buffer.alloc(40 * 1024 * 1024));
        response.end();
      },
      { ...LIMITS, silence: 60_000, total: 60_000, continued: 60_000 },
    );
    const begin = () => send({ canContinue: () => true }, { isKept: true });
    const begun = await Promise.all(Array.from({ length: 12 }, begin));
    const read = begun.reduce((sum, { body }) => sum + body.length, 0);
    expect(read).toBeLessThan(80 * 1024 * 1024);
    for (const { free, rest } of begun) {
      free();
      rest!.destroy();
    }
    const { body, rest } = await begin();
    rest!.destroy();
    expect(body.length).toBeGreaterThan(15 * 1024 * 1024);
  });

  it('unpacks a body only as far as it is read', async () => {
    const large = deflateSync(Buffer.alloc(60 * 1024 * 1024));
    const { send } = await serve((_request, response) =>
      response.writeHead(200, { 'content-encoding': 'deflate' }).end(large),
    );
    const { rest } = await send({ keeps: () => true });
    await once(rest!, 'readable');
    await setTimeout(50);
    expect(rest!.readableLength).toBeLessThan(1024 * 1024);
    expect((await buffer(rest!)).length).toBe(60 * 1024 * 1024);
  });

  it('does not wait for a server of TLS that never answers, neither after the page was left nor at the end', async () => {
    const server = createTcpServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const sender = new ExposedSender();
    const { port } = server.address() as AddressInfo;
    const url = new ExposedHosts('127.0.0.1').read(`https://127.0.0.1:${port}/`, 'request')!;
    const request = { url, method: 'GET', headers: {}, body: undefined };
    const left = new AbortController();
    const sending = sender.send(request, left.signal);
    const [connection] = await once(server, 'connection');
    left.abort('left');
    await expect(sending).rejects.toBe('left');
    sender.close();
    await once(connection.resume(), 'close');
  });

  it('does not wait for the body of a response to HEAD, however long it would be', async () => {
    const { send } = await serve((_request, response) =>
      response.writeHead(200, { 'content-length': 10 ** 10 }).end(),
    );
    const response = await send({ method: 'HEAD' });
    expect(response.headers).toContain('content-length: 10000000000');
  });

  it('uses its connections again, and repeats a request for which the server had closed one', async () => {
    let requests = 0;
    const { send, connections, server } = await serve((_request, response) => response.end(`${++requests}`));
    for (let count = 0; count < 3; count++) await send();
    expect(connections()).toBe(1);
    const sending = send({ method: 'POST', body: Buffer.from('abc') });
    server.closeAllConnections();
    expect(String((await sending).body)).toBe('4');
  });

  it('repeats a request once, over a new connection, if the server has closed all idle ones', async () => {
    const { send, server } = await serve((_request, response) => response.end('done'));
    await Promise.all([send(), send(), send(), send()]);
    const sending = send();
    server.closeAllConnections();
    expect(String((await sending).body)).toBe('done');
  });

  it('connects to localhost while this process is busy', async () => {
    const { send, server } = await serve((_request, response) => response.end('reached'));
    const { port } = server.address() as AddressInfo;
    const url = new ExposedHosts('localhost').read(`http://localhost:${port}/`, 'request')!;
    const sending = send({ url });
    // Longer than Node waits for one of the two addresses.
    for (const end = Date.now() + 300; Date.now() < end;);
    expect(String((await sending).body)).toBe('reached');
  });

  it('rejects with the code of the connection', async () => {
    const { send, server } = await serve(() => {});
    server.close();
    await expect(send()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });
});

describe('a response that a page reads in parts', () => {
  const HEAD = { status: 200, reason: '', sent: {}, isCut: false, free: () => {} };

  /** @param isTaken Whether the pages take what they receive. */
  function play({ isTaken = true } = {}) {
    const commands: string[] = [];
    const parts: PartMessage[] = [];
    const send = async (method: string, call: { arguments?: { value: PartMessage }[] }) => {
      commands.push(method);
      parts.push(...(call.arguments ?? []).map(({ value }) => value));
      if (!isTaken) await new Promise(() => {});
    };
    const session = (id: string) => ({ id, target: { id, type: 'page' } });
    const origins = ['', 'http://app', 'http://other'];
    // Only what a browser answers.
    const context = {
      clients: { keepBody: (_id: undefined, kept: { drop(): void }) => kept.drop() },
      cdp: { send },
      targets: {
        of: session,
        placeOf: (_session: string, context: number) => ({ origin: origins[context] }),
        knownOriginOf: () => origins[1],
      },
      signal: new AbortController().signal,
    } as unknown as Context;
    const streams = new ExposedStreams(context);
    const bridge = new PageBridge(context, { body: streams, fetch: streams.requests });
    const say = (said: string, executionContextId = 1, from = 'page') => {
      const [what, id, url = ''] = said.split(' ');
      const frames = what === 'begin' ? [`open ${id} fetch ${url}`] : [`open ${id} body `, `send ${id} `];
      for (const payload of frames)
        bridge.receive({ name: '__exposedNetwork', payload, executionContextId }, from);
    };
    const begin = (body: Buffer[] = [], page = 'page') => {
      const rest = new PassThrough();
      const { headers } = streams.begin(
        { ...HEAD, headers: [], body, rest },
        { page, networkId: undefined, isCors: false },
      );
      return { id: headers.join().replace('x-exposed-stream: ', ''), rest };
    };
    return { streams, session, commands, parts, say, begin };
  }

  it('arrives whole, one part for each that is asked for, and its garbage is collected', async () => {
    const { begin, say, parts, commands } = play();
    const size = 60 * 1024 * 1024;
    const { id, rest } = begin([Buffer.alloc(size)]);
    rest.end();
    for (let pulls = 1; !parts.at(-1)?.isEnd; pulls++) {
      say(`pull ${id} `);
      await expect.poll(() => parts.length).toBe(pulls);
    }
    const sizes = parts.flatMap(({ bytes }) =>
      bytes === undefined ? [] : Buffer.byteLength(bytes, 'base64'),
    );
    expect(sizes.reduce((sum, one) => sum + one)).toBe(size);
    expect(Math.max(...sizes)).toBe(1024 * 1024);
    // The browser compiles each part as code, which it keeps until it is told to collect it.
    expect(commands.filter((method) => method === 'HeapProfiler.collectGarbage')).toHaveLength(1);
  });

  it('is not sent further while the page has not taken the part before, however often a script asks', async () => {
    const { begin, say, commands } = play({ isTaken: false });
    const { id } = begin([Buffer.alloc(60 * 1024 * 1024)]);
    for (let times = 0; times < 1000; times++) {
      say(`pull ${id} `);
      if (times % 100 === 0) await setTimeout(1);
    }
    expect(commands).toHaveLength(1);
    for (let times = 0; times < 1000; times++) say(`pull ${times} `);
    expect(commands.length).toBeLessThan(300);
  });

  it('stays open if another page begins more than there may be', () => {
    const { begin } = play();
    const mine = begin();
    const others = Array.from({ length: 300 }, () => begin([], 'other'));
    expect(mine.rest.destroyed).toBe(false);
    expect(others.filter(({ rest }) => !rest.destroyed)).toHaveLength(255);
  });

  it('is that of a document whose own requests are announced, not by a frame of another origin', () => {
    const { streams, session, say } = play();
    const url = 'http://app/data';
    const tracked = streams.track(session('page') as never, 'page', url);
    say(`begin 1 ${url}`, 2);
    expect(tracked.isOfFetch()).toBe(false);
    // Nor do many requests of another page push it out.
    say(`begin 1 ${url}`);
    for (let id = 0; id < 3000; id++) say(`begin ${id} ${url}`, 1, 'other');
    expect(tracked.isOfFetch()).toBe(true);
    streams.track(session('page') as never, 'page', url);
    expect(tracked.isOfFetch()).toBe(false);
  });

  it('can be that of a redirect: the first URL was announced', () => {
    const { streams, session, say } = play();
    const track = (url: string, id: string) => streams.track(session('page') as never, 'page', url, id);
    say('begin 1 http://app/old');
    track('http://app/old', '1').end();
    expect(track('http://app/new', '1').isOfFetch()).toBe(true);
    expect(track('http://app/new', '2').isOfFetch()).toBe(false);
  });
});

it('hears a service worker once, which has a session below each of its pages, too', () => {
  const sent: string[] = [];
  // Only what a browser answers.
  const cdp = { send: async (method: string, _params: object, session = '') => sent.push(method + session) };
  const prepared: string[] = [];
  const sessions = new Sessions();
  const client = {} as OwnClient;
  const targets = new Targets({
    client,
    cdp: () => cdp as unknown as CdpClient,
    shared: { sessions, waiting: new WaitingTargets(sessions) },
    prepare: async ({ id }) => prepared.push(id),
  });
  const attach = (sessionId: string, type: string, from?: string) => {
    const params = { sessionId, targetInfo: { targetId: type, type, url: 'http://app/' } };
    const method = 'Target.attachedToTarget';
    sessions.note(parsedMessage({ method, params, sessionId: from }), client);
    targets.listeners[method]!(params, from);
  };
  attach('1', 'page');
  attach('2', 'service_worker');
  attach('3', 'service_worker', '1');
  expect([prepared, targets.of('2')?.id, targets.of('3')]).toEqual([['1', '2'], '2', undefined]);
  expect(sent).toContain('Runtime.runIfWaitingForDebugger3');
  // The page is left.
  targets.listeners['Target.detachedFromTarget']!({ sessionId: '3' }, '1');
  expect(targets.of('2')?.id).toBe('2');
});

describe('the WebSockets of a page that calls the function of the lease itself', () => {
  async function serve(browserContextId = 'own', product = 'Chrome/156.0') {
    const sender = new ExposedSender();
    sender.resemble({ product });
    const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    await once(server, 'listening');
    const left = new AbortController();
    onTestFinished(() => {
      left.abort('left');
      for (const client of server.clients) client.terminate();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const told: { id: string; open?: object; close?: { code: number } }[] = [];
    const session = { id: 'session', target: { id: 'page', type: 'page', browserContextId } };
    const send = async (
      method: string,
      params: { arguments?: { value: (typeof told)[number] }[]; browserContextId?: string } = {},
    ) => {
      told.push(...(params.arguments ?? []).map(({ value }) => value));
      if (method === 'Target.getBrowserContexts') return { browserContextIds: ['created'] };
      const { browserContextId: id = 'own' } = params;
      if (params.browserContextId === 'own') throw new Error('Failed to find browser context');
      const cookie = { name: id, value: '1', domain: '127.0.0.1', path: '/', sameSite: 'None' };
      return { cookies: [cookie] };
    };
    // Only what a browser answers.
    const context = {
      hosts: new ExposedHosts('127.0.0.1'),
      clients: { headersOf: () => ({}), userAgentOf: () => undefined },
      cdp: { send },
      targets: { of: () => session, placeOf: () => undefined, frames: async () => [] },
      signal: left.signal,
      sender,
      onRequest: () => {},
    } as unknown as Context;
    const bridge = new PageBridge(context, { socket: new ExposedWebSockets(context) });
    const call = (id: string, message: { url?: string; text?: string; close?: object }) => {
      const { text, close } = message;
      const said = text === undefined ? `c${JSON.stringify(close)}` : `t${text}`;
      const payload = message.url ? `open ${id} socket ${JSON.stringify(message)}` : `send ${id} ${said}`;
      bridge.receive({ name: '__exposedNetwork', payload, executionContextId: 1 }, 'session');
    };
    return { server, bridge, call, told, url: `ws://127.0.0.1:${port}/` };
  }

  it('are at most as many as in a browser, also if they are opened at once', async () => {
    const { server, call, told, url } = await serve();
    for (let id = 0; id < 300; id++) call(`${id}`, { url });
    const ends = () => [told.filter((one) => one.open).length, told.filter((one) => one.close).length];
    await expect.poll(ends).toEqual([255, 45]);
    expect(server.clients.size).toBe(255);
  });

  it('are not opened if the page closes them, or is left, before', async () => {
    const { server, bridge, call, told, url } = await serve();
    call('closed', { url });
    call('closed', { close: {} });
    call('left', { url });
    bridge.leave('session');
    call('open', { url });
    await expect.poll(() => told).toMatchObject([{ id: 'closed', close: { code: 1006 } }, { id: 'open' }]);
    expect(server.clients.size).toBe(1);
  });

  it('are not opened, and end nothing, for a page that says what no script of ours says', async () => {
    const { server, bridge, call, told, url } = await serve();
    const odd = { toString: 1, valueOf: 1 };
    const say = (payload: string) =>
      bridge.receive({ name: '__exposedNetwork', payload, executionContextId: 1 }, 'session');
    call('one', { url });
    await expect.poll(() => told).toMatchObject([{ id: 'one', open: {} }]);
    for (const content of ['', 'null', '7', 'no JSON', JSON.stringify({ url: odd })])
      say(`open odd socket ${content}`);
    for (const frame of ['', 'open', `open ${'x'.repeat(100)} socket {}`, 'open a constructor ', 'send  t'])
      say(frame);
    await expect.poll(() => told.filter((one) => one.close)).toHaveLength(5);
    expect(server.clients.size).toBe(1);
    call('one', { close: { code: 3000, reason: odd } });
    await expect.poll(() => told.at(-1)).toMatchObject({ id: 'one', close: { code: 3000 } });
  });

  it.each(['own', 'created'])(
    'have the cookies of the %s context, also in a browser that does not know its own by its id',
    async (context) => {
      const { server, call, url } = await serve(context, 'HeadlessChrome/156.0');
      const requested = once(server, 'connection');
      call('one', { url });
      const [, request] = await requested;
      expect(request.headers.cookie).toBe(`${context}=1`);
    },
  );

  it.each([
    ['Chrome/156.0', 'en-US,en;q=0.9'],
    ['HeadlessChrome/156.0', undefined],
  ])('name the encodings and the languages that the browser itself names: %s', async (product, language) => {
    const { server, call, url } = await serve('own', product);
    const requested = once(server, 'connection');
    call('one', { url });
    const [, request] = await requested;
    expect(request.headers['accept-encoding']).toBe('gzip, deflate, br, zstd');
    expect(request.headers['accept-language']).toBe(language);
  });

  it('end if their server does not take what the page sends', async () => {
    const { server, call, told, url } = await serve();
    server.on('connection', (socket) => socket.pause());
    call('full', { url });
    await expect.poll(() => told).toMatchObject([{ open: {} }]);
    const text = 'x'.repeat(30 * 1024 * 1024);
    for (let count = 0; count < 5; count++) call('full', { text });
    await expect.poll(() => told.at(-1)).toMatchObject({ id: 'full', close: { code: 1006 } });
  });
});
