import { execFileSync } from 'node:child_process';
import dns from 'node:dns';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { constants, createSecureServer as createHttp2Server } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import { createServer as createTcpServer } from 'node:net';
import { mkdtempSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { pipeline, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { WebSocketServer } from 'ws';
import * as playwright from '../../../src/playwright.js';
import * as puppeteer from '../../../src/puppeteer.js';
import { BrowserPool, type RunEvent } from '../../../src/index.js';
import { cdp } from '../../../src/services.js';
import { startChromium } from '../../support/chromium.js';
import { DRIVERS, type AnyLease } from '../../support/drivers.js';
import { FaultBench } from '../../support/fault-bench.js';
import { useLocalPool } from '../../support/local.js';
import { hasOpenSsl, selfSigned } from '../../support/self-signed.js';
import { Site } from '../../support/site.js';

/** Browsers that do not reach the servers of this machine by the name localhost. */
const used = useLocalPool({
  args: ['--host-resolver-rules=MAP localhost 127.0.0.1:9, MAP *.localhost 127.0.0.1:9'],
});

/** Above 1 MB, from which a body waits for memory. */
const LARGE = Buffer.alloc(2 * 1024 * 1024, 'large ');
/** More than the 64 MB that CDP can carry. */
const FILE_PARTS = 33;
/** Above 256 MB as a message of the browser, in which each becomes 7.3 characters. */
const ZEROS = 37 * 1024 * 1024;
const LARGE_UPLOAD = 16 * 1024 * 1024;
const BINARY = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
const HTML = { 'content-type': 'text/html' };
const FORM =
  '<form method=post enctype=multipart/form-data action=/size><input type=file name=f><button>send</button></form>';

/** The streams of /live. */
const live: ServerResponse[] = [];
/** The cookies of the streams of /counted that have ended. */
const left: string[] = [];
/** Answers of the app, by path. */
const APP: Record<string, (request: IncomingMessage, response: ServerResponse) => unknown> = {
  '/': (_request, response) => response.writeHead(200, HTML).end(`<title>app</title>${FORM}`),
  '/redirect': (_request, response) =>
    response.writeHead(302, { location: '/', 'set-cookie': ['first=1; HttpOnly', 'second=2'] }).end(),
  '/headers': ({ headers }, response) => response.end(JSON.stringify(headers)),
  '/login': ({ headers }, response) =>
    headers.authorization === undefined
      ? response.writeHead(401, { 'www-authenticate': 'Basic realm="app"' }).end()
      : response.end(JSON.stringify(headers)),
  '/echo': async (request, response) => response.writeHead(200, HTML).end(await buffer(request)),
  '/size': async (request, response) => response.end(`${(await buffer(request)).length > LARGE.length}`),
  '/ends': async (request, response) => {
    const body = await buffer(request);
    const at = body.indexOf('first');
    response.end(
      `${body.subarray(at, at + 5)} ${body.indexOf('last') - at} ${request.headers['content-type']}`,
    );
  },
  '/binary': (_request, response) => response.end(BINARY),
  '/large': (_request, response) => response.end(LARGE),
  '/attachment': (_request, response) => {
    const headers = {
      'content-disposition': 'attachment; filename=a.bin',
      'content-length': FILE_PARTS * LARGE.length,
    };
    response.writeHead(200, headers);
    pipeline(Readable.from(Array.from({ length: FILE_PARTS }, () => LARGE)), response, () => {});
  },
  '/gzip': (_request, response) =>
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('compressed')),
  // A status that Chromium does not know, without a phrase.
  '/odd': ({ socket }) => socket.end('HTTP/1.1 499 \r\nContent-Length: 2\r\n\r\nok'),
  '/events': (_request, response) =>
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: an event\n\n'),
  '/live': (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: first\n\n');
    live.push(response);
  },
  '/whose': ({ headers }, response) => {
    const whose = headers.cookie ?? 'nobody';
    const all = { 'content-type': 'text/event-stream', 'access-control-allow-origin': '*' };
    response.writeHead(200, all).write(`data: first of ${whose}\n\n`);
    const timer = setInterval(() => response.write(`data: next of ${whose}\n\n`), 20);
    response.once('close', () => clearInterval(timer));
  },
  '/counted': ({ headers }, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    let count = 0;
    const say = () => response.write(`data: ${headers.cookie} ${count++}\n\n`);
    say();
    const timer = setInterval(say, 30);
    response.once('close', () => {
      clearInterval(timer);
      left.push(headers.cookie ?? '');
    });
  },
  '/few': (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    void (async () => {
      for (const count of [1, 2, 3]) {
        response.write(`data: ${count}\n\n`);
        await setTimeout(60);
      }
      response.end();
    })();
  },
  '/worker.js': (_request, response) =>
    response
      .writeHead(200, { 'content-type': 'text/javascript' })
      .end(
        'onmessage = async ({ source }) => (source ?? self).postMessage(await (await fetch("/binary")).text())',
      ),
};

const server = createServer((request, response) => {
  const answer = APP[request.url!];
  return answer ? answer(request, response) : response.writeHead(404).end();
});
const sockets = new WebSocketServer({ server });
sockets.on('connection', (socket, { headers }) => {
  socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
  socket.send(`${headers.origin} ${headers.cookie}`);
});
let port: number;
let app: string;
beforeAll(async () => {
  await once(server.listen(0, 'localhost'), 'listening');
  port = (server.address() as AddressInfo).port;
  app = `http://localhost:${port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

/** What a page of the app finds there. */
const LOOK = `(async () => {
  const text = async (path, options) => (await fetch(path, options)).text();
  const bytes = async (path) => new Uint8Array(await (await fetch(path)).arrayBuffer());
  const large = await bytes('/large');
  const worker = new Worker('/worker.js');
  const said = new Promise((resolve) => (worker.onmessage = ({ data }) => resolve(data.length)));
  worker.postMessage('');
  return {
    secure: isSecureContext,
    cookie: document.cookie,
    sent: JSON.parse(await text('/headers')).cookie,
    binary: (await bytes('/binary')).join(),
    large: [large.length, String.fromCharCode(...large.slice(-6))],
    gzip: await text('/gzip'),
    odd: (await fetch('/odd')).status,
    post: await text('/echo', { method: 'POST', body: new Blob(['a', 'b']) }),
    worker: (await said) > 100,
  };
})()`;
const FOUND = {
  secure: true,
  cookie: 'second=2',
  sent: 'first=1; second=2',
  binary: BINARY.join(),
  large: [LARGE.length, LARGE.subarray(-6).toString()],
  gzip: 'compressed',
  odd: 499,
  post: 'ab',
  worker: true,
};

const BODY = 'document.body.innerText';

/** Sends a text and bytes, and resolves to all messages, or to the code of the close. */
const SOCKET = (to: number) =>
  new Promise((resolve) => {
    const socket = new WebSocket(`ws://localhost:${to}/`);
    socket.binaryType = 'arraybuffer';
    const messages: unknown[] = [];
    socket.onopen = () => {
      socket.send('text');
      socket.send(new Uint8Array([1, 2, 255]));
    };
    socket.onmessage = ({ data }) => {
      messages.push(typeof data === 'string' ? data : new Uint8Array(data as ArrayBuffer).join());
      if (messages.length === 3 || data === 'mine') resolve(messages);
    };
    socket.onclose = ({ code }) => resolve([code]);
  });

const FIRST_MESSAGE = (host: string) =>
  new Promise((resolve) => (new WebSocket(`ws://${host}/`).onmessage = ({ data }) => resolve(data)));

describe.each(DRIVERS)('$name', (driver) => {
  const { run, openPage } = driver;

  it('reaches an app on this machine in all pages, with cookies, uploads and workers, and nothing stays', async () => {
    const hosts: string[] = [];
    const onEvent = (event: RunEvent) => event.type === 'host-exposed' && hosts.push(event.host);
    const result = await run(
      used.pool,
      async (lease) => {
        const { page } = lease;
        await page.goto(`${app}/redirect`);
        const found = await page.evaluate(LOOK);
        const other = (await openPage(lease)) as AnyLease['page'];
        await other.goto(`${app}/headers`);
        const { cookie } = JSON.parse(await other.evaluate(BODY)) as Record<string, string>;
        return [found, cookie];
      },
      { exposeNetwork: `localhost:${port}`, onEvent },
    );
    expect(result.value).toEqual([FOUND, FOUND.sent]);
    expect(result).toMatchObject({ released: 'reused', cleanupErrors: [] });
    expect(hosts).toEqual([`localhost:${port}`]);
    const next = await run(used.pool, ({ page }) => page.goto(app)).catch((error: unknown) => error);
    expect(String(next)).toMatch(/REFUSED/);
  });

  it('reaches an app with the user and the password of a URL, nothing but the named hosts, and fails as a local browser if a server is down', async () => {
    const down = await Site.open(() => {});
    const unused = down.as('localhost');
    const { value } = await run(
      used.pool,
      async ({ page }) => {
        await page.goto(`${app.replace('//', '//user:secret@')}/login`);
        const { authorization } = JSON.parse(await page.evaluate(BODY)) as Record<string, string>;
        const login = Buffer.from(authorization!.slice('Basic '.length), 'base64').toString();
        // Not earlier: another server may get its port.
        await down[Symbol.asyncDispose]();
        const open = async (url: string) => page.goto(url).catch((error: unknown) => String(error));
        return [login, await open(unused), await open(`http://other.localhost:${port}`)];
      },
      // A login ends with its context.
      { exposeNetwork: `${new URL(unused).host},localhost:${port}`, context: 'new' },
    );
    expect(value).toEqual([
      'user:secret',
      expect.stringContaining('ERR_CONNECTION_REFUSED'),
      expect.stringMatching(/REFUSED/),
    ]);
  });

  it('reaches the app again after a reconnect, also from a page that stayed open', async () => {
    await using bench = await FaultBench.start(used.local);
    bench.service.script('acquire', bench.grant);
    const options = { reconnect: 'eager', exposeNetwork: '<loopback>' } as const;
    await using lease = await driver.lease(bench.pool, options);
    await lease.use(async ({ page }) => {
      await page.goto(app);
      await page.evaluate(`fetch('/events').then(async ({ body }) => {
        const reader = body.getReader();
        await reader.read();
        globalThis.left = reader.read().catch(String);
      })`);
    });
    bench.road.lose('reset');
    const evaluate = (code: string) => lease.use(({ page }) => page.evaluate<unknown>(code));
    const again = () => evaluate('fetch("/gzip").then((response) => response.text())');
    await expect.poll(() => again().catch(() => '')).toBe('compressed');
    // A response that was read in parts has failed, and another one can be read so.
    expect(await evaluate('globalThis.left')).toBe('TypeError: network error');
    const first = `fetch('/events').then(async ({ body }) => new TextDecoder().decode((await body.getReader().read()).value))`;
    expect(await evaluate(first)).toBe('data: an event\n\n');
    expect(await lease.release()).toMatchObject({ released: 'reused' });
  });
});

it('goes on when only its own WebSocket was lost, and an EventSource misses no event', async () => {
  await using bench = await FaultBench.start(used.local);
  bench.service.script('acquire', bench.grant);
  await using lease = await playwright.leaseBrowser(bench.pool, { exposeNetwork: '<loopback>' });
  const seen = await lease.use(async ({ page }) => {
    await page.goto(app);
    await page.evaluate(`globalThis.seen = [];
      new EventSource('/live').onmessage = ({ data }) => seen.push(data);
      new WebSocket('/').onclose = ({ code }) => seen.push(code);`);
    await expect.poll(() => page.evaluate('seen')).toEqual(['first']);
    // The EventSource has connected again, and waits for its next events.
    await setTimeout(500);
    bench.road.lose('reset', { but: 1 });
    await expect.poll(() => page.evaluate('seen')).toEqual(['first', 1006]);
    live[0]!.write('data: second\n\n');
    await expect.poll(() => page.evaluate('seen')).toEqual(['first', 1006, 'second']);
    return page.evaluate('fetch("/gzip").then((response) => response.text())');
  });
  expect([seen, live.length]).toEqual(['compressed', 1]);
});

it('receives whole uploads that Chromium can not send over its debugging port as one message', async () => {
  await using browser = await startChromium();
  await using pool = new BrowserPool('mine', { service: cdp(`http://${new URL(browser.url).host}`) });
  const visit = async ({ page }: playwright.PlaywrightHandles) => {
    await page.goto(app);
    const sent = await page.evaluate<string[]>(`(async () => {
      const file = (size) => new File(['first', new Uint8Array(size), 'last'], 'a.bin', { type: 'a/type' });
      const form = new FormData();
      form.append('file', file(${ZEROS}));
      const fetched = await (await fetch('/ends', { method: 'POST', body: form })).text();
      const request = new XMLHttpRequest();
      request.open('POST', '/ends');
      request.send(file(${LARGE_UPLOAD}));
      await new Promise((resolve) => (request.onloadend = resolve));
      return [fetched, request.responseText];
    })()`);
    return sent;
  };
  const { value } = await playwright.withPooledBrowser(pool, visit, { exposeNetwork: 'localhost' });
  const multipart = new RegExp(`^first ${ZEROS + 5} multipart/form-data; boundary=----\\w+$`);
  const ofXhr = `first ${LARGE_UPLOAD + 5} a/type`;
  expect(value).toEqual([expect.stringMatching(multipart), ofXhr]);
});

describe('with Playwright', () => {
  const exposeNetwork = 'localhost,*.localhost';

  /** Runs a callback whose page is at the app. `messages` are those of its console. */
  const visit = <Value>(
    callback: (lease: playwright.PlaywrightHandles & { messages: string[] }) => Promise<Value>,
  ) =>
    playwright.withPooledBrowser(
      used.pool,
      async (lease) => {
        const messages: string[] = [];
        lease.page.on('console', (message) => messages.push(message.text()));
        await lease.page.goto(app);
        return callback({ ...lease, messages });
      },
      { exposeNetwork },
    );

  it('reaches the app in popups, new contexts, frames and service workers, below the routes of the page', async () => {
    const { value } = await visit(async ({ browser, page }) => {
      const [popup] = await Promise.all([page.waitForEvent('popup'), page.evaluate('void open("/gzip")')]);
      await popup.waitForLoadState();
      const context = await browser.newContext();
      const other = await context.newPage();
      await other.goto(`http://shop.localhost:${port}/headers`);
      // A frame of the app in a page of another origin.
      await other.goto('about:blank');
      await other.setContent(`<iframe src="${app}/gzip"></iframe>`);
      const frame = other.frameLocator('iframe').locator('body');
      const worker = await page.evaluate<number>(
        `navigator.serviceWorker.register('/worker.js').then(async () => {
          const { active } = await navigator.serviceWorker.ready;
          active.postMessage('');
          return new Promise((resolve) => (navigator.serviceWorker.onmessage = ({ data }) => resolve(data.length)));
        })`,
      );
      await page.route('**/gzip', (route) => route.fulfill({ body: 'mine' }));
      await page.route('**/binary', (route) => route.continue());
      const mine = await page.evaluate(`fetch('/gzip').then((response) => response.text())`);
      const ours = await page.evaluate(`fetch('/binary').then((response) => response.ok)`);
      return [await popup.innerText('body'), await frame.innerText(), worker > 100, mine, ours];
    });
    expect(value).toEqual(['compressed', 'compressed', true, 'mine', true]);
  });

  it('gives the events of one EventSource to no other document, and to none without its cookies', async () => {
    const { value } = await visit(async ({ page }) => {
      const first = (options = '{}') =>
        page.evaluate<string>(`new Promise((resolve) => {
          const source = new EventSource('${app}/whose', ${options});
          source.onmessage = ({ data }) => resolve(data);
          source.onerror = () => resolve('refused');
        })`);
      await page.evaluate(`document.cookie = 'me=1; SameSite=None; Secure'`);
      const own = await first();
      await page.reload();
      const reloaded = await first();
      await page.goto(`http://shop.localhost:${port}/`);
      return [own, reloaded, await first('{ withCredentials: true }'), await first()];
    });
    expect(value).toEqual(['first of me=1', 'first of me=1', 'refused', 'first of nobody']);
  });

  it('opens a stream of its own for each EventSource of one URL, and ends that of a closed one', async () => {
    const { value } = await visit(async ({ page }) => {
      const seen = await page.evaluate(`(async () => {
        const begin = () => {
          const source = new EventSource('/counted#part');
          const seen = [];
          const enough = new Promise((resolve) => {
            source.onmessage = ({ data }) => seen.push(data) === 8 && resolve();
          });
          return { source, seen, enough };
        };
        document.cookie = 'me=first';
        const one = begin();
        await new Promise((resolve) => (one.source.onopen = resolve));
        document.cookie = 'me=second';
        const other = begin();
        await Promise.all([one.enough, other.enough]);
        one.source.close();
        document.cookie = 'me=third';
        const third = begin();
        await third.enough;
        other.source.close();
        return [one.source.url, ...[one, other, third].map(({ seen }) => seen.slice(0, 8).join())];
      })()`);
      // The third one stays open.
      await expect.poll(() => left.toSorted()).toEqual(['me=first', 'me=second']);
      return seen;
    });
    const eight = (of: string) => Array.from({ length: 8 }, (_, count) => `me=${of} ${count}`).join();
    expect(value).toEqual([`${app}/counted#part`, eight('first'), eight('second'), eight('third')]);
  });

  it('delivers a stream of events whole to an XMLHttpRequest that asks for one', async () => {
    const { value } = await visit(({ page }) =>
      page.evaluate(`new Promise((resolve) => {
        const request = new XMLHttpRequest();
        request.open('GET', '/few');
        request.setRequestHeader('Accept', 'text/event-stream');
        request.onloadend = () => resolve(request.responseText);
        request.send();
      })`),
    );
    expect(value).toBe('data: 1\n\ndata: 2\n\ndata: 3\n\n');
  });

  it('refuses a WebSocket without TLS in a page of HTTPS, except to this machine', async () => {
    const { value } = await playwright.withPooledBrowser(
      used.pool,
      async ({ page }) => {
        await page.route('https://secure.test/', (route) =>
          route.fulfill({ contentType: 'text/html', body: '' }),
        );
        await page.goto('https://secure.test/');
        return page.evaluate<
          string[]
        >(`Promise.all(['localhost:${port}', 'shop.internal'].map((host) => new Promise((resolve) => {
          const socket = new WebSocket('ws://' + host);
          socket.onopen = socket.onerror = ({ type }) => resolve(type);
        }).catch(({ name }) => name)))`);
      },
      { exposeNetwork: 'localhost,shop.internal' },
    );
    expect(value).toEqual(['open', 'SecurityError']);
  });

  it('sends the forms and files of a page, and reports a body that it can not read', async () => {
    const { value } = await visit(async ({ page, messages }) => {
      const file = { name: 'a.txt', mimeType: 'text/plain', buffer: LARGE };
      // A busy machine needs more than the usual 30 s.
      await page.setInputFiles('input', file, { timeout: 110_000 });
      await page.click('button');
      await page.waitForURL('**/size');
      const uploaded = await page.innerText('body');
      const stream = await page.evaluate(
        `fetch('/echo', { method: 'POST', duplex: 'half', body: new Blob(['a']).stream() }).catch(() => 'failed')`,
      );
      await expect.poll(() => messages.join()).toContain('can not be read');
      return [uploaded, stream];
    });
    expect(value).toEqual(['true', 'failed']);
  });

  it('delivers a stream of events in parts, and does not wait for an endless response at the end', async () => {
    const { value, cleanupErrors } = await visit(async ({ page }) => {
      const event = await page.evaluate(
        `new Promise((resolve) => (new EventSource('/events').onmessage = ({ data }) => resolve(data)))`,
      );
      await page.evaluate(`void fetch('/events')`);
      return event;
    });
    expect(value).toBe('an event');
    expect(cleanupErrors).toEqual([]);
  });

  it('connects WebSockets to the app, in each context, below the routes of the page', async () => {
    const { value } = await visit(async ({ browser, page }) => {
      const context = await browser.newContext();
      const results: unknown[] = [];
      for (const each of [page, await context.newPage()]) {
        await each.goto(app);
        await each.evaluate('document.cookie = "a=1"');
        results.push(await each.evaluate(SOCKET, port));
      }
      // Nobody listens there.
      results.push(await page.evaluate(SOCKET, 9));
      await page.routeWebSocket('**/', (route) => route.send('mine'));
      await page.reload();
      results.push(await page.evaluate(SOCKET, port));
      return results;
    });
    const seen = [`${app} a=1`, 'text', '1,2,255'];
    expect(value).toEqual([seen, seen, [1006], ['mine']]);
  });

  it('connects no WebSocket to a host that a script of a page makes up', async () => {
    let connections = 0;
    const trap = createTcpServer((socket) => {
      connections++;
      socket.destroy();
    }).listen(0, '127.0.0.2');
    await once(trap, 'listening');
    const host = `127.0.0.2:${(trap.address() as AddressInfo).port}`;
    await visit(async ({ page }) => {
      // As a page that has found the function before the script of the lease took it.
      const cdp = await page.context().newCDPSession(page);
      await page.evaluate('delete globalThis.__exposedNetwork');
      await cdp.send('Runtime.addBinding', { name: '__exposedNetwork' });
      let id = 0;
      const call = (url: string) =>
        page.evaluate(
          `__exposedNetwork(${JSON.stringify(`open ${++id} socket ${JSON.stringify({ url })}`)})`,
        );
      await call(`ws://${host}\\path?x=@127.0.0.1:${port}/`);
      await call(`ws://${host}?@localhost:${port}/`);
      await call(`ws://${host}/`);
      // It comes after the others, and is connected.
      await call(`ws://localhost:${port}/`);
      await expect.poll(() => sockets.clients.size).toBeGreaterThan(0);
    });
    expect(connections).toBe(0);
    trap.close();
  });

  it('opens the WebSocket of a page of another site with its own origin, and without the cookies of the app', async () => {
    await using other = await Site.open((_request, response) =>
      response.writeHead(200, HTML).end('<title>other</title>'),
    );
    const { value } = await visit(async ({ page, browser }) => {
      await page.goto(app);
      await page.evaluate('document.cookie = "lax=1"; document.cookie = "strict=1; SameSite=Strict"');
      // The app stays open beside it.
      const [context] = browser.contexts();
      const attacker = await context!.newPage();
      await attacker.goto(other.url);
      return [await attacker.evaluate(SOCKET, port), await page.evaluate(SOCKET, port)];
    });
    expect(value).toEqual([
      [`${other.url} undefined`, 'text', '1,2,255'],
      [`${app} lax=1; strict=1`, 'text', '1,2,255'],
    ]);
  });

  it('takes two names below one public suffix for two sites, as the browser does', async () => {
    const { lookup } = dns;
    // The names of this machine are below no public suffix of two labels.
    const found = vi.spyOn(dns, 'lookup');
    found.mockImplementation(((_name: string, ...rest: [object, () => void]) =>
      lookup('localhost', ...rest)) as never);
    onTestFinished(() => found.mockRestore());
    const { value } = await playwright.withPooledBrowser(
      used.pool,
      async ({ page }) => {
        await page.goto(`http://shop.co.uk:${port}/`);
        await page.evaluate('document.cookie = "lax=1; Domain=shop.co.uk"');
        const seen: unknown[] = [];
        for (const host of ['bank.co.uk', 'www.shop.co.uk']) {
          await page.goto(`http://${host}:${port}/`);
          seen.push(await page.evaluate(FIRST_MESSAGE, `shop.co.uk:${port}`));
        }
        return seen;
      },
      { exposeNetwork: '*.co.uk' },
    );
    expect(value).toEqual([`http://bank.co.uk:${port} undefined`, `http://www.shop.co.uk:${port} lax=1`]);
  });

  it.skipIf(!hasOpenSsl)('accepts a self-signed certificate only with ignoreHTTPSErrors', async () => {
    await using secure = await serveSecurely();
    const { value } = await visit(async ({ browser, page, messages }) => {
      const refused = await page.evaluate(`fetch('${secure.url}').catch(() => 'refused')`);
      await expect.poll(() => messages.join()).toContain('Set ignoreHTTPSErrors of the context');
      const context = await browser.newContext({ ignoreHTTPSErrors: true });
      const other = await context.newPage();
      await other.goto(secure.url);
      return [refused, await other.innerText('body')];
    });
    expect(value).toEqual(['refused', 'secure']);
  });

  it.skipIf(!hasOpenSsl)('fails a request that a server of HTTP/2 cancels without an error', async () => {
    const canceling = createHttp2Server(selfSigned());
    canceling.on('stream', (stream) => stream.close(constants.NGHTTP2_CANCEL));
    await once(canceling.listen(0, 'localhost'), 'listening');
    onTestFinished(() => void canceling.close());
    const url = `https://localhost:${(canceling.address() as AddressInfo).port}/`;
    const { value } = await visit(async ({ browser }) => {
      const context = await browser.newContext({ ignoreHTTPSErrors: true });
      return (await context.newPage()).goto(url).catch(String);
    });
    expect(value).toContain('net::ERR_FAILED');
  });
});

describe('with Puppeteer', () => {
  it('brings a file that CDP can not carry into the folder of the option downloads', async () => {
    const downloads = mkdtempSync(join(tmpdir(), 'downloads-'));
    const open = async (path: string, options: object) => {
      const run = async ({ page }: { page: { goto(url: string): Promise<unknown> } }) =>
        page.goto(path).catch((error: Error) => /net::\w+/.exec(error.message)?.[0]);
      return puppeteer.withPooledBrowser(used.pool, run, { exposeNetwork: 'localhost', ...options });
    };
    expect((await open(`${app}/attachment`, { downloads })).downloads).toEqual([
      {
        path: join(downloads, 'a.bin'),
        url: `${app}/attachment`,
        suggestedFilename: 'a.bin',
        size: FILE_PARTS * LARGE.length,
      },
    ]);
    // Without a folder of this machine, nothing may pass for the file.
    expect((await open(`${app}/attachment`, {})).value).toBe('net::ERR_FAILED');
  });

  it.each(['cdp', 'bidi'] as const)(
    'sends the files of a form over %s, if their names differ',
    async (protocol) => {
      const [file, other] = [0, 1].map(() => join(mkdtempSync(join(tmpdir(), 'form-')), 'a "file".txt'));
      const own = join(mkdtempSync(join(tmpdir(), 'form-')), 'own.txt');
      for (const path of [file!, other!, own]) writeFileSync(path, LARGE);
      // Node rounds this time up to the next millisecond.
      if (process.platform === 'linux') execFileSync('touch', ['-d', '@1700000000.122999999', file!, other!]);
      const { value } = await puppeteer.withPooledBrowser(
        used.pool,
        async ({ page, browser }) => {
          const thief = await browser.newPage();
          const send = async (path: string) => {
            await page.goto(app);
            const input = await page.$('input');
            await input!.uploadFile(path);
            const sent = 'fetch("/size", { method: "POST", body: new FormData(document.forms[0]) })';
            return page.evaluate(`${sent}.then((response) => response.text(), () => 'failed')`);
          };
          // Another page gives a file of its own the name of one that it does not have.
          const steal = async () => {
            await thief.goto(app);
            await (await thief.$('input'))!.uploadFile(own);
            const body = `const body = new FormData(); body.append('f', document.querySelector('input').files[0], 'a "file".txt');`;
            const sent = `${body} return (await fetch('/size', { method: 'POST', body })).text();`;
            return thief.evaluate(`(async () => { ${sent} })().catch(() => 'failed')`);
          };
          return [await send(file!), await steal(), await send(other!)];
        },
        { exposeNetwork: 'localhost', protocol },
      );
      expect(value).toEqual(['true', 'failed', 'failed']);
    },
  );

  it('reaches the app below the request interception of the page', async () => {
    const { value } = await puppeteer.withPooledBrowser(
      used.pool,
      async ({ page }) => {
        await page.setRequestInterception(true);
        page.on('request', (request) =>
          request.url().endsWith('/gzip') ? request.respond({ body: 'mine' }) : request.continue(),
        );
        await page.goto(app);
        return [
          await page.title(),
          await page.evaluate(`fetch('/gzip').then((response) => response.text())`),
          await page.evaluate(SOCKET, port),
        ];
      },
      { exposeNetwork: 'localhost' },
    );
    expect(value).toEqual(['app', 'mine', [`${app} undefined`, 'text', '1,2,255']]);
  });

  it.skipIf(!hasOpenSsl)('accepts a self-signed certificate only with acceptInsecureCerts', async () => {
    await using secure = await serveSecurely();
    const open = async (connectOptions: { acceptInsecureCerts?: boolean }) => {
      const run = puppeteer.withPooledBrowser(
        used.pool,
        async ({ page }) => {
          await page.goto(secure.url);
          return page.evaluate(BODY);
        },
        { exposeNetwork: 'localhost', connectOptions },
      );
      return run.then(({ value }) => value, String);
    };
    expect(await open({})).toContain('net::ERR_FAILED');
    expect(await open({ acceptInsecureCerts: true })).toBe('secure');
  });
});

async function serveSecurely(): Promise<{ url: string } & AsyncDisposable> {
  const secure = createHttpsServer(selfSigned(), (_request, response) => response.end('secure'));
  await once(secure.listen(0, 'localhost'), 'listening');
  return {
    url: `https://localhost:${(secure.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      secure.closeAllConnections();
      await once(secure.close(), 'close');
    },
  };
}
