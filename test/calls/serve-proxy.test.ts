import { once } from 'node:events';
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import {
  BrowserPool,
  serveProxy,
  type PoolProxy,
  type ProxyEvent,
  type ProxyOptions,
} from '../../src/index.js';
import { cdp, kernel, type BrowserService } from '../../src/services.js';
import { rejection } from '../pool/support.js';
import { useFastClock, useJumpingClock } from '../support/fake-clock.js';
import { reply, TOKEN } from '../support/fake-service.js';
import { sendHead } from '../support/fault-road.js';
import { answerOwnCommand } from '../support/played-browser.js';
import { PlayedLease } from '../support/played-lease.js';

let played: PlayedLease;
let proxy: PoolProxy;
let events: ProxyEvent[];

beforeEach(async () => {
  played = await PlayedLease.start();
  events = [];
});

afterEach(async () => {
  await proxy?.close();
  await played[Symbol.asyncDispose]();
});

async function start(
  options: ProxyOptions<object> = {},
  pool: BrowserPool<object> = played.pool,
): Promise<void> {
  const retry = { minTimeout: 10, maxTimeout: 20 };
  proxy = await serveProxy(pool, { retry, onClient: (event) => events.push(event), ...options });
}

/** A client of the proxy, which has not connected yet. */
function dial(path = '', headers: Record<string, string> = {}): WebSocket {
  const client = new WebSocket(proxy.url.replace('http', 'ws') + path, { headers });
  client.on('error', () => {});
  return client;
}

async function connect(path = ''): Promise<WebSocket> {
  const client = dial(path);
  await once(client, 'open');
  return client;
}

/** Status and reason with which a client is refused. */
async function refusal(client: WebSocket): Promise<string> {
  const [, response] = await once(client, 'unexpected-response');
  return `${response.statusCode} ${await textOf(response)}`;
}

/** Status and body of the answer to a GET request. */
async function get(path: string, headers: Record<string, string> = {}): Promise<string> {
  const asking = request(new URL(path, proxy.url), { agent: false, headers }).end();
  const [response] = await once(asking, 'response');
  return `${response.statusCode} ${await textOf(response)}`;
}

async function textOf(response: AsyncIterable<Buffer>): Promise<string> {
  let text = '';
  for await (const chunk of response) text += String(chunk);
  return text.trim();
}

/** Code and reason with which the proxy disconnects a client. */
async function endOf(client: WebSocket): Promise<string> {
  const [code, reason] = await once(client, 'close');
  return `${code} ${String(reason)}`;
}

/** The value of `reuse` in the release requests. */
const releases = () => played.service.of('release').map(({ body }) => body?.['reuse']);
const leases = () => played.service.of('acquire').length;
const types = () => events.map(({ type }) => type);
/** The commands of clients that reached the browser. */
const commands = () => played.browser.received.filter((text) => answerOwnCommand(text) === undefined);

describe('a connection', () => {
  it('leases a browser when it begins, passes all messages, and returns the cleaned browser when it ends', async () => {
    await start();
    expect(played.service.requests).toEqual([]);
    const client = await connect();
    const got: [string, boolean][] = [];
    client.on('message', (data, isBinary) => got.push([String(data), isBinary]));
    played.browser.onText = (text, far) =>
      far.send(answerOwnCommand(text) ?? text.replace('method', 'result'));
    client.send('{"id":1,"method":"A.b"}');
    client.send(Buffer.from(`{"id":2,"method":"${'x'.repeat(3_000_000)}"}`));
    await expect.poll(() => got.length).toBe(2);
    expect(got[0]).toEqual(['{"id":1,"result":"A.b"}', false]);
    expect(proxy.counts).toEqual({ connected: 1, waiting: 0, leased: 1 });
    client.terminate();
    await expect.poll(types).toEqual(['waiting', 'leased', 'connected', 'disconnected', 'released']);
    expect(releases()).toEqual([true]);
    expect(played.browser.received.join()).toContain('Storage.clearDataForOrigin');
    expect(events.at(-1)).toMatchObject({ sessionId: 'session-1', summary: { released: 'reused' } });
  });

  it('destroys a browser whose logins would be lost, and one that ended', async () => {
    const json = played.session({ profile: { name: 'logins' } });
    played.service.script('acquire', { status: 200, json }, { status: 200, json: played.session() });
    await start();
    (await connect()).close();
    await expect.poll(releases).toEqual([false]);
    const client = await connect();
    played.browser.cut();
    expect(await endOf(client)).toMatch(/^1001 The browser was lost: its connection broke/);
    await expect.poll(releases).toEqual([false, false]);
  });

  it('may not close the browser, which belongs to the pool', async () => {
    await start();
    for (const [path, method] of [
      ['', 'Browser.close'],
      ['/session', 'browser.close'],
    ]) {
      const client = await connect(path);
      const answer = once(client, 'message');
      client.send(JSON.stringify({ id: 7, method, params: {} }));
      expect(JSON.parse(String((await answer)[0]))).toMatchObject({ id: 7, result: {} });
      expect(await endOf(client)).toBe('1000 Closed.');
    }
    await expect.poll(releases).toEqual([true, true]);
    expect(commands()).toEqual([]);
  });

  it('to one page gets messages without a session id', async () => {
    await start();
    const client = dial('/devtools/page/p1');
    const got: unknown[] = [];
    client.on('message', (data) => got.push(JSON.parse(String(data))));
    const other = '{"method":"C.d","params":{},"sessionId":"child"}';
    played.browser.onText = (text, far) => {
      const answer = answerOwnCommand(text);
      if (answer !== undefined) return far.send(answer);
      far.send('{"id":1,"result":{},"sessionId":"page"}');
      far.send(attached('page'));
      far.send('{"sessionId":"page","method":"A.c"}');
      far.send(other);
      return far.send('{"method":"Target.targetInfoChanged","params":{}}');
    };
    await once(client, 'open');
    client.send('{"id":1,"method":"A.b"}');
    await expect
      .poll(() => got)
      .toEqual([
        { id: 1, result: {} },
        expect.objectContaining({ method: 'Target.attachedToTarget' }),
        { method: 'A.c' },
        JSON.parse(other),
      ]);
    expect(commands().map((text) => JSON.parse(text))).toEqual([{ id: 1, method: 'A.b', sessionId: 'page' }]);
    played.browser.onText = (text, far) => far.send(answerOwnCommand(text) ?? '{}');
    client.send('{"id":2,"method":"Browser.close"}');
    expect(await endOf(client)).toBe('1000 Closed.');
    await expect.poll(releases).toEqual([true]);
  });

  it('to a page that does not exist is refused with 404', async () => {
    await start();
    const error = { message: 'No target with given id found' };
    played.browser.onText = (text, far) => {
      const id = Number(/"id":(\d+)/.exec(text)?.[1]);
      far.send(text.includes('attachToTarget') ? JSON.stringify({ id, error }) : answerOwnCommand(text)!);
    };
    expect(await refusal(dial('/devtools/page/p1'))).toMatch(/^404 The browser has no page "p1": No target/);
    await expect.poll(() => releases().length).toBe(1);
  });

  it('gets no file of this machine without a secret: the client can be another user', async () => {
    await start({ secret: false });
    const client = await connect();
    const params = { files: [import.meta.filename], nodeId: 1 };
    const command = JSON.stringify({ id: 1, method: 'DOM.setFileInputFiles', params });
    client.send(command);
    await expect.poll(commands).toEqual([command]);
    expect(played.browser.dialled).toBe(1);
    client.close();
  });

  it('that sends nonsense harms no other client', async () => {
    await start();
    const other = await connect();
    const nonsense = {
      '': '{"id":1,"method":"DOM.setFileInputFiles","params":1}',
      '/alice': '{"id":1,"method":"Browser.setDownloadBehavior"',
      '/session': '"session.new',
    };
    for (const [path, text] of Object.entries(nonsense)) {
      const client = await connect(path);
      const end = endOf(client);
      client.send(text);
      if (path !== '/alice') expect(await end).toBe('1007 The message can not be read.');
      client.terminate();
    }
    played.browser.onText = (text, far) => far.send(answerOwnCommand(text) ?? text);
    other.send('{"id":1,"method":"A.b"}');
    expect(String((await once(other, 'message'))[0])).toBe('{"id":1,"method":"A.b"}');
  });

  it.each([
    ['size', '1009 A message may have 72 MiB. Send files by their path, and other data in parts.'],
    [
      'values',
      '1009 A message may have 500,000 values and names. Send more as one text (JSON.stringify), or in parts.',
    ],
    ['levels', '1009 A message may have 1,000 levels. Send more as one text (JSON.stringify), or in parts.'],
    ['fragments', '1008 The message has too many fragments. Send it in larger ones, or in one.'],
  ])(
    'ends with a message above the limit of its %s, and the reason; another client continues',
    async (kind, reason) => {
      const attacks: Record<string, (client: WebSocket) => void> = {
        size: (client) => sendHead(client, 73 * 1024 * 1024),
        values: (client) => client.send(hostile(`[${'[],'.repeat(251_000)}0]`)),
        levels: (client) => client.send(hostile('['.repeat(2000) + ']'.repeat(2000))),
        fragments: (client) => {
          for (let sent = 0; sent < 20_000; sent++) client.send('[', { fin: false });
        },
      };
      await start();
      played.browser.onText = (text, far) => far.send(answerOwnCommand(text) ?? text);
      const other = await connect();
      for (const path of ['', '/alice', '/session']) {
        const client = await connect(path);
        const end = endOf(client);
        attacks[kind]!(client);
        expect(await end, path).toBe(reason);
      }
      other.send('{"id":1,"method":"A.b"}');
      expect(String((await once(other, 'message'))[0])).toBe('{"id":1,"method":"A.b"}');
      expect(commands().filter((text) => text.includes('Test.hostile'))).toEqual([]);
    },
  );

  it('may have a message of 50 MB in base64, of many texts, and of 500 levels', async () => {
    await start();
    const client = await connect();
    const texts = JSON.stringify(Array.from({ length: 200_000 }, (_, index) => `[{"\\,${index}`));
    const contents = [`"${'A'.repeat(66_700_000)}"`, texts, '['.repeat(500) + ']'.repeat(500)];
    for (const content of contents) client.send(hostile(content));
    await expect.poll(() => commands().length).toBe(3);
    expect(commands().map((text, index) => text === hostile(contents[index]!))).toEqual([true, true, true]);
    client.close();
  });

  it('ends after idleTimeout without a command, with a reason, and the next one gets a browser', async () => {
    await start({ idleTimeout: 200 });
    const client = await connect('/alice');
    expect(await endOf(client)).toBe(
      '1001 No command for 200 ms: the browser was released. Connect again for a new one.',
    );
    // Not kept: its time is over.
    await expect.poll(releases).toEqual([true]);
    expect(events.find(({ type }) => type === 'disconnected')).toMatchObject({ name: 'alice', isIdle: true });
    (await connect('/alice')).close();
    (await connect('/bob')).close();
    // Also of a service that opens no page by itself.
    const notices = played.browser.received.filter((text) => text.includes('Page.navigate'));
    expect(notices.map(decodeURIComponent)).toEqual([expect.stringContaining('This is a new browser.')]);
  });
});

describe('a connection that waits', () => {
  it('is answered when there is a browser; without one in time, it is refused with 503 and the reason', async () => {
    const answers = [{ status: 204 }, { status: 204 }, { status: 200, json: played.session() }];
    played.service.script('acquire', ...answers);
    await start();
    (await connect()).close();
    await expect.poll(releases).toEqual([true]);
    await proxy.close();
    played.service.script('acquire', { status: 204, delay: 50 });
    await start({ acquireTimeout: 300, pollTimeout: 100 });
    expect(await refusal(dial())).toMatch(/^503 No browser became available in pool "test" within 300 ms/);
    expect(events.at(-1)).toMatchObject({ type: 'refused', status: 503 });
  });

  it('is refused with the reason of the service', async () => {
    const message = `no, ${TOKEN}`;
    played.service.script('acquire', { status: 403, json: { code: 'forbidden', message } });
    await start();
    expect(await refusal(dial())).toMatch(/^502 403 forbidden: no, \[redacted\]/);
  });

  it('leases nothing after its end: a browser that still arrives is released', async () => {
    let grant!: () => void;
    played.service.script('acquire', (response) => {
      grant = () => reply(response, { status: 200, json: played.session() });
    });
    await start();
    const client = dial('/alice');
    await expect.poll(leases).toBe(1);
    expect(proxy.counts).toEqual({ connected: 0, waiting: 1, leased: 0 });
    client.terminate();
    await expect.poll(() => proxy.counts.waiting).toBe(0);
    grant();
    await expect.poll(releases).toEqual([true]);
    expect(played.browser.dialled).toBe(0);
  });
});

describe('a name', () => {
  it('gives its client the same browser again, and refuses a second client at the same time', async () => {
    await start();
    const first = await connect('/alice');
    expect(await refusal(dial('/alice'))).toMatch(/^409 Another client uses the browser "alice"/);
    first.close();
    await expect.poll(() => proxy.counts).toEqual({ connected: 0, waiting: 0, leased: 1 });
    const again = await connect('/alice/session');
    again.close();
    await expect.poll(() => proxy.counts.connected).toBe(0);
    expect(leases()).toBe(1);
    // Another name is another browser.
    (await connect('/bob')).close();
    expect(leases()).toBe(2);
    expect(releases()).toEqual([]);
    await proxy.close();
    expect(releases()).toEqual([true, true]);
  });

  it('gives a client that connects again at once the same browser, also before its last connection has ended', async () => {
    await start();
    for (let times = 0; times < 5; times++) (await connect('/alice')).close();
    expect(leases()).toBe(1);
    expect(types()).not.toContain('refused');
  });

  it('keeps its browser for the time of keep, with a connection, and then releases it', async () => {
    await start({ keep: 300 });
    (await connect('/alice')).close();
    await expect.poll(() => played.browser.open).toBe(1);
    await expect.poll(releases).toEqual([true]);
    await expect.poll(() => played.browser.open).toBe(0);
    (await connect('/alice')).close();
    expect(leases()).toBe(2);
  });

  it('gets a new browser if the kept one has ended', async () => {
    await start();
    (await connect('/alice')).close();
    await expect.poll(() => played.browser.open).toBe(1);
    played.browser.hasEnded = true;
    played.browser.cut();
    await expect.poll(releases).toEqual([false]);
    played.browser.hasEnded = false;
    (await connect('/alice')).close();
    expect(leases()).toBe(2);
  });
});

describe('a browser that ends with its connection', () => {
  useFastClock();

  const service: BrowserService = {
    ...kernel,
    name: 'connections',
    grant: (...args) => ({ ...kernel.grant(...args), endsWithConnection: true }),
  };
  /** Answers as Chromium: a session of the browser, one of a page, and an event of each. */
  const answer = (text: string): string[] => {
    const { id, method, sessionId } = JSON.parse(text) as Record<string, unknown>;
    const result = { sessionId: `browser-${played.browser.received.length}`, targetInfos: [], targetId: 'p' };
    if (sessionId === undefined) return [JSON.stringify({ id, result }), '{"method":"Target.root"}'];
    return [
      `{"id":${id},"result":{"method":"${method}"},"sessionId":"${sessionId}"}`,
      attached(String(sessionId), `child of ${String(sessionId)}`),
      `{"method":"A.c","sessionId":"child of ${String(sessionId)}"}`,
    ];
  };

  it('has one socket for all clients of its name, one after the other, each with its own session', async () => {
    await using pool = new BrowserPool('test', { ...played.service.options, service });
    await start({ keep: 60_000 }, pool);
    played.browser.onText = (text, far) => answer(text).forEach((line) => far.send(line));
    const sessions: unknown[] = [];
    for (const round of [1, 2]) {
      const client = await connect('/alice');
      const got: unknown[] = [];
      client.on('message', (data) => got.push(String(data)));
      client.send('{"id":1,"method":"A.b"}');
      await expect
        .poll(() => got)
        .toEqual([
          '{"id":1,"result":{"method":"A.b"}}',
          expect.stringContaining('Target.attachedToTarget'),
          expect.stringContaining('{"method":"A.c","sessionId":"child of '),
        ]);
      sessions.push(JSON.parse(played.browser.received.at(-1)!).sessionId);
      expect(await refusal(dial('/alice'))).toMatch(/^409 /);
      client.close();
      const detached = expect.stringContaining(
        `detachFromTarget","params":{"sessionId":"${sessions[round - 1]}"`,
      );
      await expect.poll(() => played.browser.received.at(-1)).toEqual(detached);
    }
    expect(new Set(sessions).size).toBe(2);
    expect(played.browser.dialled).toBe(1);
    await proxy.close();
    await expect.poll(releases).toEqual([false]);
  });

  it('has many clients at the same time with share', async () => {
    await using pool = new BrowserPool('test', { ...played.service.options, service });
    await start({ share: true }, pool);
    played.browser.onText = (text, far) => answer(text).forEach((line) => far.send(line));
    const clients = [await connect(), await connect('/alice')];
    const got = clients.map((client) => {
      const texts: string[] = [];
      client.on('message', (data) => texts.push(String(data)));
      return texts;
    });
    clients.forEach((client, index) => client.send(`{"id":1,"method":"A.of${index}"}`));
    for (const index of [0, 1])
      await expect.poll(() => got[index]![0]).toBe(`{"id":1,"result":{"method":"A.of${index}"}}`);
    // A client over BiDi has a socket of its own.
    (await connect('/session')).close();
    for (const client of clients) client.close();
    await expect.poll(() => proxy.counts.connected).toBe(0);
    expect(played.browser.dialled).toBe(2);
    await proxy.close();
  });
});

describe('the name in a path', () => {
  const names = () => played.service.of('acquire').map(({ body }) => body?.['name']);

  it('is the name of the lease', async () => {
    await start();
    (await connect('/alice')).close();
    await connect('/bob');
    await connect();
    expect(names()).toEqual(['alice', 'bob', undefined]);
  });

  it.each([409, 422])(
    'that is in use at the service (%i) does not keep a client from its browser',
    async (status) => {
      const taken = { status, json: { code: 'conflict', message: 'name is in use' } };
      played.service.script('acquire', taken, { status: 200, json: played.session() });
      await start();
      await connect('/alice');
      expect(names()).toEqual(['alice', expect.stringMatching(/^alice-[\da-f]{6}$/)]);
      expect(events.find(({ type }) => type === 'leased')).toMatchObject({ name: 'alice' });
    },
  );

  it('is not the name of a browser that all clients share', async () => {
    await start({ share: true, name: 'suite' });
    await connect('/alice');
    await connect('/bob');
    expect(names()).toEqual(['suite']);
  });
});

it('leases a browser without a service to one name after the other, and leaves it clean and open', async () => {
  await using pool = new BrowserPool('mine', { service: cdp(played.browser.url) });
  await start({ keep: 100 }, pool);
  const first = await connect('/alice');
  const second = connect('/bob');
  await expect.poll(() => proxy.counts).toEqual({ connected: 1, waiting: 1, leased: 1 });
  first.close();
  (await second).close();
  await expect.poll(() => types().filter((type) => type === 'released').length).toBe(2);
  const summaries = events.flatMap((event) => (event.type === 'released' ? event.summary : []));
  expect(summaries.map(({ released, cleanupErrors }) => [released, ...cleanupErrors])).toEqual([
    ['reused'],
    ['reused'],
  ]);
  expect(played.service.requests).toEqual([]);
});

it('releases a shared browser that no client has used for idleTimeout', async () => {
  await start({ share: true, idleTimeout: 200 });
  (await connect()).close();
  await expect.poll(releases).toEqual([true]);
  (await connect()).close();
  expect(played.browser.received.join()).toContain('This%20is%20a%20new%20browser.');
});

it('does not disconnect a client for idleTimeout whose command has no response yet', async () => {
  await start({ idleTimeout: 200 });
  const client = await connect();
  let answer = () => {};
  played.browser.onText = (text, far) => {
    answer = () => far.send(text.replace('method', 'result'));
    const own = answerOwnCommand(text);
    if (own !== undefined) far.send(own);
  };
  client.send('{"id":1,"method":"Slow.command"}');
  await sleep(1000);
  expect(client.readyState).toBe(client.OPEN);
  answer();
  expect(await endOf(client)).toMatch(/^1001 No command for 200 ms/);
});

it.each([0, Infinity])('never disconnects an idle client with idleTimeout %d', async (idleTimeout) => {
  await start({ idleTimeout });
  const client = await connect();
  await sleep(300);
  expect(client.readyState).toBe(client.OPEN);
  client.close();
});

it('counts a client that is slow to disconnect until it has', async () => {
  await start();
  const client = await connect();
  client.pause();
  played.browser.cut();
  await expect.poll(releases).toEqual([false]);
  expect(proxy.counts.waiting).toBe(0);
  client.terminate();
});

it('gives all clients one browser with share, until it is closed', async () => {
  await start({ share: true, name: 'job' });
  const clients = await Promise.all(['', '/alice', '/session'].map(connect));
  expect(played.service.of('acquire').map(({ body }) => body?.['name'])).toEqual(['job']);
  clients.forEach((client) => client.close());
  await expect.poll(() => proxy.counts).toEqual({ connected: 0, waiting: 0, leased: 1 });
  await proxy.close();
  expect(releases()).toEqual([true]);
});

describe('the lifetime of a lease', () => {
  const post = async (path: string, body: string, headers = {}) => {
    const response = await fetch(proxy.url + path, { method: 'POST', body, headers });
    return `${response.status} ${(await response.text()).trim()}`;
  };

  it('disconnects a client with the reason, and the next one of its name gets a browser that says so', async () => {
    const jump = useJumpingClock();
    await start({ lifetime: 600_000 });
    const client = await connect('/alice');
    const ended = endOf(client);
    jump(600_000);
    expect(await ended).toBe(
      '1001 The lease reached its lifetime of 600 s: its browser is released. For longer work, increase lifetime.',
    );
    await expect.poll(releases).toEqual([false]);
    (await connect('/alice')).close();
    const notice = played.browser.received.find((text) => text.includes('Page.navigate'));
    expect(decodeURIComponent(notice!)).toContain('released after its lifetime of 600 s');
  });

  it('ends a browser that waits for its next client', async () => {
    const jump = useJumpingClock();
    await start({ lifetime: 600_000, keep: 6_000_000 });
    (await connect('/alice')).close();
    await expect.poll(() => proxy.counts.connected).toBe(0);
    jump(600_000);
    await expect.poll(releases).toEqual([false]);
    expect(proxy.counts.leased).toBe(0);
  });

  it('is shown at /NAME/lease, and moved there', async () => {
    await start({ lifetime: 60_000 });
    const client = await connect('/alice');
    const read = async () => JSON.parse((await get(`${proxy.url}/alice/lease`)).slice(4)) as object;
    const before = await read();
    expect(before).toEqual({
      name: 'alice',
      sessionId: 'session-1',
      age: expect.any(Number),
      remaining: expect.any(Number),
    });
    const answer = await post('/alice/lease', '{"extend": 30000}');
    const { remaining } = JSON.parse(answer.slice(4)) as { remaining: number };
    expect(remaining).toBeGreaterThan(60_000);
    expect(remaining).toBeLessThanOrEqual(90_000);
    expect(await read()).toMatchObject({ remaining: expect.closeTo(remaining, -5) });
    // Never later than twice the lifetime.
    expect(await post('/alice/lease', '{"extend": 1e9}')).toMatch(/^200 .*"remaining":1[01]\d{4}[,}]/);
    client.close();
  });

  it('is not there without the option, and can not be extended', async () => {
    await start();
    const client = await connect('/alice');
    expect(await get(`${proxy.url}/alice/lease`)).toMatch(
      /^200 {"name":"alice","sessionId":"session-1","age":\d+}$/,
    );
    expect(await post('/alice/lease', '{"extend": 1000}')).toMatch(/^409 .*--lifetime/);
    client.close();
  });

  it('leases no browser for a question about a lease', async () => {
    await start({ lifetime: 60_000 });
    expect(await get(`${proxy.url}/bob/lease`)).toBe('404 No browser of this name is leased.');
    expect(await post('/bob/lease', '{"extend": 1000}')).toMatch(/^404 /);
    expect(await refusal(dial('/bob/lease'))).toMatch(/^404 /);
    expect(leases()).toBe(0);
  });

  it.each([
    ['', 400],
    ['{"extend": "soon"}', 400],
    ['{"extend": -1}', 400],
    ['{"extend": 1, "more": 1}', 400],
    ['[1000]', 400],
    [`{"extend": 1${' '.repeat(2000)}}`, 413],
  ])('is not moved by the body %j', async (body, status) => {
    await start({ lifetime: 60_000 });
    const client = await connect('/alice');
    expect(await post('/alice/lease', body)).toMatch(new RegExp(`^${status} .`));
    client.close();
  });

  it('is shown to nobody without the secret, and to no page', async () => {
    await start({ lifetime: 60_000 });
    const client = await connect('/alice');
    expect(await get('/alice/lease')).toMatch(/^404 /);
    const path = `${proxy.url}/alice/lease`;
    expect(await get(path, { origin: 'https://evil.example' })).toMatch(/^403 /);
    expect(await get(path, { host: 'evil.example' })).toMatch(/^403 /);
    expect(await post('/alice/lease', '{"extend": 1000}', { origin: 'https://evil.example' })).toMatch(
      /^403 /,
    );
    client.close();
  });

  it('refuses other methods with 405', async () => {
    await start();
    const response = await fetch(`${proxy.url}/alice/lease`, { method: 'DELETE' });
    expect(response.status).toBe(405);
  });
});

describe('the address', () => {
  it('answers like a debugging port, with its own host and secret, and leases nothing', async () => {
    await start();
    const { host, pathname, port } = new URL(proxy.url);
    expect(pathname).toMatch(/^\/[\da-f-]{36}$/);
    const version = await get(`${pathname}/json/version/`);
    expect(JSON.parse(version.slice(4))).toMatchObject({ webSocketDebuggerUrl: `ws://${host}${pathname}` });
    const local = { host: `localhost:${port}` };
    expect(await get(`${pathname}/alice/json/version`, local)).toContain(
      `ws://localhost:${port}${pathname}/alice"`,
    );
    const [page] = JSON.parse((await get(`${pathname}/json/list`)).slice(4));
    expect(page).toMatchObject({
      type: 'page',
      webSocketDebuggerUrl: `ws://${host}${pathname}/devtools/page/any`,
    });
    expect(await get(`${pathname}/json/protocol`)).toMatch(/^200 .*"domains"/);
    expect(played.service.requests).toEqual([]);
  });

  it.each([
    ['another host', '', { host: 'evil.test' }, /^403 The Host header/],
    ['a page of another origin', '', { origin: 'https://evil.test' }, /^403 Requests from other origins/],
    ['an unknown path', '/a/b', {}, /^404 There is no such path/],
    ['an unknown request', '/json/old', {}, /^404 There is no such path/],
  ])('refuses %s', async (_what, path, headers, reason) => {
    await start();
    const { pathname } = new URL(proxy.url);
    expect(await get(pathname + (path || '/json/version'), headers)).toMatch(reason);
    expect(await refusal(dial(path, headers))).toMatch(reason);
    expect(leases()).toBe(0);
  });

  it('is not open without its secret, unless secret is false', async () => {
    await start();
    const { origin } = new URL(proxy.url);
    const wrong = '/00000000-0000-4000-8000-000000000000';
    for (const path of ['/', '/json/version', `${wrong}/json/version`])
      expect(await get(path)).toMatch(/^404 /);
    await proxy.close();
    await start({ secret: false });
    expect(new URL(proxy.url).pathname).toBe('/');
    expect(await get('/json/version')).toMatch(/^200 .*"ws:\/\/127\.0\.0\.1:\d+"/);
    expect(await get('/json/version', { origin })).toMatch(/^403 /);
    expect(await get('/')).toMatch(/^426 /);
    (await connect('/alice')).close();
  });

  it('without a secret refuses what a page sends, also a request without an Origin', async () => {
    await start({ secret: false, share: true });
    const { origin } = new URL(proxy.url);
    expect(await get('/json/version', { origin })).toMatch(/^403 Requests of pages/);
    expect(await get('/json/version', { 'sec-fetch-site': 'cross-site' })).toMatch(/^403 Requests of pages/);
    expect(await refusal(dial('', { origin }))).toMatch(/^403 Requests of pages/);
    for (const path of ['/json/new?about:blank', '/json/new'])
      expect(await get(path)).toBe('405 This path allows PUT.');
    expect(leases()).toBe(0);
  });

  it('refuses an upgrade that is no WebSocket, and leases nothing for it', async () => {
    await start();
    const { port, pathname } = new URL(proxy.url);
    const [upgrade, version] = ['websocket', 'sec-websocket-version'];
    const key = { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' };
    for (const headers of [
      { upgrade: 'h2c' },
      { upgrade },
      { upgrade, ...key },
      { upgrade, ...key, [version]: '12' },
    ]) {
      const how = { port, path: pathname, headers: { ...headers, connection: 'upgrade' } };
      const [response] = await once(request(how).end(), 'response');
      expect(`${response.statusCode} ${await textOf(response)}`).toBe('400 Only WebSockets are served here.');
    }
    expect(leases()).toBe(0);
  });

  it('says that its port is in use', async () => {
    await start();
    const port = Number(new URL(proxy.url).port);
    const error = await rejection(serveProxy(played.pool, { port }));
    expect(error.message).toBe(
      `port ${port} can't be opened: another program uses it. Choose another port, or 0 for any free port.`,
    );
    expect((await rejection(serveProxy(played.pool, { name: 'one' }))).message).toContain('share');
  });
});

it('disconnects and releases everything when it is closed', async () => {
  const open: (() => void)[] = [];
  await start();
  const [client, named] = [await connect(), await connect('/alice')];
  played.service.script('acquire', (response) => {
    open.push(() => reply(response, { status: 200, json: played.session() }));
  });
  const waiting = refusal(dial());
  await expect.poll(() => open.length).toBe(1);
  const ends = [endOf(client), endOf(named)];
  const closing = proxy.close();
  expect(await waiting).toBe('503 The proxy has ended.');
  expect(await Promise.all(ends)).toEqual(['1001 The proxy has ended.', '1001 The proxy has ended.']);
  await closing;
  expect(releases()).toEqual([true, true]);
  expect(proxy.counts).toEqual({ connected: 0, waiting: 0, leased: 0 });
  open.forEach((grant) => grant());
  await expect.poll(releases).toEqual([true, true, true]);
});

it('slows the browser down for a client that does not read, and the client for a browser that does not', async () => {
  await start();
  const message = `"method":"Test.large","params":{"data":"${'x'.repeat(100_000)}"}}`;
  const client = await connect();
  client.pause();
  const far = played.browser.clients.at(-1)!;
  for (let sent = 0; sent < 300; sent++) far.send(`{${message}`);
  await vi.waitFor(() => expect(far.bufferedAmount).toBeGreaterThan(10_000_000));
  // Nothing more moves: the rest waits at its sender.
  let waits = -1;
  await expect.poll(() => waits === (waits = far.bufferedAmount), { interval: 100 }).toBe(true);
  expect(waits).toBeGreaterThan(10_000_000);
  let received = 0;
  client.on('message', () => received++);
  client.resume();
  await expect.poll(() => received).toBe(300);
  far.pause();
  for (let sent = 1; sent <= 300; sent++) client.send(`{"id":${sent},${message}`);
  await expect.poll(() => waits === (waits = client.bufferedAmount), { interval: 100 }).toBe(true);
  expect(waits).toBeGreaterThan(10_000_000);
  far.resume();
  await expect.poll(() => commands().length).toBe(300);
  client.close();
  await expect.poll(releases).toEqual([true]);
});

/** A client of a session has opened another one. */
function attached(sessionId: string, child = 'child'): string {
  const targetInfo = { targetId: 't', type: 'page', url: '' };
  const params = { sessionId: child, targetInfo };
  return JSON.stringify({ method: 'Target.attachedToTarget', params, sessionId });
}

function hostile(content: string): string {
  return `{"id":1,"method":"Test.hostile","params":{"a":${content}}}`;
}
