import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { chromium, firefox } from 'playwright-core';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { serveProxy, type PoolProxy, type ProxyEvent, type ProxyOptions } from '../../src/index.js';
import { look, titled, useLocalPool } from '../support/local.js';
import { Site } from '../support/site.js';

/** Its browsers do not reach the servers of this machine by the name localhost. */
const used = useLocalPool({ args: ['--host-resolver-rules=MAP localhost 127.0.0.1:9'] });
let proxy: PoolProxy;
let events: ProxyEvent[];
/** A folder of this machine with a file that no client may read. */
let bait: string;
const SECRET = 'canary-content-of-a-file';
const LARGE = 51 * 1024 * 1024;

const start = async (options: ProxyOptions = {}) => {
  proxy = await serveProxy(used.pool, { onClient: (event) => events.push(event), ...options });
};

const startIn = async (folder: string) => {
  const before = process.cwd();
  process.chdir(folder);
  try {
    await start();
  } finally {
    process.chdir(before);
  }
};

beforeEach(() => {
  events = [];
  bait = mkdtempSync(join(tmpdir(), 'bait-'));
  writeFileSync(join(bait, 'secret.txt'), SECRET);
});
afterEach(() => proxy.close());

/** What happened to each browser. */
const released = () => events.flatMap((event) => (event.type === 'released' ? event.summary.released : []));

it('does not disconnect a client for idleTimeout while one of its calls works in the browser', async () => {
  await start({ idleTimeout: 1000 });
  const browser = await chromium.connect(proxy.playwrightUrl!);
  const page = await browser.newPage();
  const slow = page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 3000, 'done')));
  expect(await slow).toBe('done');
  await expect.poll(() => browser.isConnected(), { timeout: 10_000 }).toBe(false);
  expect(events).toContainEqual(expect.objectContaining({ type: 'disconnected', isIdle: true }));
});

it("gives a client of Playwright's protocol a browser without contexts, files of any size from and for its own machine, and leaves it clean", async () => {
  await using site = await Site.open((request, response) => {
    if (request.url === '/file') response.setHeader('content-disposition', 'attachment; filename=a.txt');
    response.setHeader('content-type', 'text/html').end('<a href=/file>a</a><input type=file>');
  });
  await start();
  const browser = await chromium.connect(proxy.playwrightUrl!);
  expect(browser.contexts()).toEqual([]);
  const folder = mkdtempSync(join(tmpdir(), 'files-'));
  const context = await browser.newContext({
    locale: 'de-DE',
    acceptDownloads: true,
    recordHar: { path: join(folder, 'all.har') },
  });
  await context.tracing.start({ screenshots: true, snapshots: true });
  const page = await context.newPage();
  page.on('dialog', (dialog) => void dialog.accept('yes'));
  await page.goto(site.url);
  expect(await page.evaluate(() => [navigator.language, prompt('really?')])).toEqual(['de-DE', 'yes']);
  await page.setInputFiles('input', join(bait, 'secret.txt'));
  expect(await page.evaluate('document.querySelector("input").files[0].text()')).toBe(SECRET);
  const size = () => page.evaluate('document.querySelector("input").files[0].size');
  const buffer = Buffer.alloc(2 * 1024 * 1024, 'a');
  await page.setInputFiles('input', { name: 'a', mimeType: 'text/plain', buffer });
  expect(await size()).toBe(buffer.length);
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('a')]);
  await download.saveAs(join(folder, 'a.txt'));
  expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toContain('type=file');
  expect((await page.screenshot()).length).toBeGreaterThan(100);
  expect(await (await context.request.get(site.url)).text()).toContain('type=file');
  await context.tracing.stop({ path: join(folder, 'trace.zip') });
  // Playwright itself sends at most 50 MB to another machine.
  const large = join(bait, 'large');
  writeFileSync(large, '');
  truncateSync(large, LARGE);
  await page.setInputFiles('input', large);
  expect(await size()).toBe(LARGE);
  await context.close();
  for (const name of ['trace.zip', 'all.har'])
    expect(statSync(join(folder, name)).size).toBeGreaterThan(1000);
  // A wait that ends with its context sends a message to an object that no longer exists.
  const other = await browser.newContext();
  const waiting = other.waitForEvent('page').catch(() => {});
  await other.close();
  await waiting;
  // The next client finds nothing of this one.
  await browser.newPage();
  await browser.close();
  await expect.poll(released).toEqual(['reused']);
  expect(await contextsOf()).toEqual([]);
});

it('leaves nothing of a client that is killed, and reports the lease', async () => {
  // Playwright would open an Inspector, for which this machine need not have a browser.
  vi.stubEnv('PWDEBUG', '1');
  await start();
  const raw = await RawClient.open().finally(() => vi.unstubAllEnvs());
  expect(await raw.call('Browser', 'newContext', {})).not.toHaveProperty('error');
  expect(proxy.counts).toMatchObject({ connected: 1, leased: 1 });
  raw.socket.terminate();
  await expect.poll(released).toEqual(['reused']);
  expect(await contextsOf()).toEqual([]);
  expect(events.map(({ type }) => type)).toEqual([
    'waiting',
    'leased',
    'connected',
    'disconnected',
    'released',
  ]);
});

it('keeps a named browser for its next client, whatever its protocol', async () => {
  await start();
  const first = await chromium.connectOverCDP(`${proxy.url}/alice`);
  await first.contexts()[0]!.pages()[0]!.goto(titled('kept'));
  await first.close();
  const again = await chromium.connect(`${proxy.playwrightUrl}/alice`);
  expect(await again.contexts()[0]!.pages()[0]!.title()).toBe('kept');
  await expect(chromium.connect(`${proxy.playwrightUrl}/alice`)).rejects.toThrow(
    /409 Conflict\s+Another client/,
  );
  await again.close();
  expect(events.filter(({ type }) => type === 'leased')).toHaveLength(1);
});

it('destroys a browser whose own context a client has logged in by HTTP, and reuses one after logins in contexts of the client', async () => {
  // Also a proxy, for another host.
  await using site = await Site.open(({ url = '', headers }, response) => {
    const kind = url.startsWith('http:') ? 'proxy' : 'www';
    response.setHeader('content-type', 'text/html');
    if (headers[kind === 'www' ? 'authorization' : 'proxy-authorization'] !== undefined)
      return response.end('<title>logged in</title>');
    const status = kind === 'www' ? 401 : 407;
    return response.writeHead(status, { [`${kind}-authenticate`]: 'Basic realm="private"' }).end();
  });
  await start();
  const login = { username: 'user', password: 'secret' };
  const further = { server: site.url };
  const loggedIn = 'logged in';
  const visit = async (options: object, url: string) => {
    const browser = await chromium.connect(proxy.playwrightUrl!);
    const own = await browser.newPage(options);
    await own.goto(url).catch(() => {});
    const title = await own.title().catch(() => 'refused');
    await browser.close();
    return title;
  };
  const other = 'http://other.test/';
  expect(await visit({ httpCredentials: login }, site.url)).toBe(loggedIn);
  expect(await visit({ proxy: { ...further, ...login } }, other)).toBe(loggedIn);
  await expect.poll(released).toEqual(['reused', 'reused']);
  expect(await visit({}, site.url)).not.toBe(loggedIn);
  expect(await visit({ proxy: further }, other)).not.toBe(loggedIn);
  const named = await chromium.connect(`${proxy.playwrightUrl!}/alice`);
  await named.contexts()[0]!.setHTTPCredentials(login);
  const page = named.contexts()[0]!.pages()[0]!;
  await page.goto(site.url);
  expect(await page.title()).toBe(loggedIn);
  await named.close();
  await proxy.close();
  expect(released().at(-1)).toBe('destroyed');
});

it('sends requests of the API, as the browser does, only to allowed hosts, and closes the connection with the browser', async () => {
  const seen: string[] = [];
  await using other = await Site.open((request, response) => response.end(seen.push(request.url!)));
  await using site = await Site.open((_request, response) =>
    response.writeHead(302, { location: `${other.url}/redirected` }).end(),
  );
  await start({ allowedHosts: new URL(site.url).host });
  const browser = await chromium.connect(proxy.playwrightUrl!);
  const { request } = await browser.newContext({ baseURL: site.url });
  expect((await request.get('/')).status()).toBe(302);
  for (const url of [`${other.url}/api`, other.url.replace('http:', '')])
    await expect(request.get(url)).rejects.toThrow('is not one of allowedHosts');
  await expect(browser.newContext({ proxy: { server: other.url } })).rejects.toThrow('exclude each other');
  const page = await browser.newPage();
  await expect(page.goto(`${other.url}/page`)).rejects.toThrow('ERR_PROXY_CONNECTION_FAILED');
  const { request: theirs } = await browser.newContext({ baseURL: other.url });
  // With a base of the same scheme, the second one is the path of a host that is not allowed.
  for (const url of ['/relative', site.url.replace('//', '')])
    await expect(theirs.get(url)).rejects.toThrow('is not one of allowedHosts');
  expect(seen).toEqual([]);
  const disconnected = new Promise((resolve) => browser.once('disconnected', resolve));
  await proxy.close();
  await disconnected;
  expect(released()).toEqual(['reused']);
});

it('serves other clients while one makes its server work without end, and then releases its browser, as it does if a message is above a limit', async () => {
  await using site = await Site.open((_request, response) => response.end());
  await start();
  const browser = await chromium.connect(proxy.playwrightUrl!);
  const page = await browser.newPage();
  await page.route(/(a+)+$/, (route) => route.continue());
  const endless = page.goto(`${site.url}/${'a'.repeat(100)}!`).catch(() => {});
  // A call after this one has no answer.
  const isBlocked = () => Promise.race([page.title().then(() => false), wait(500, true)]);
  await expect.poll(isBlocked).toBe(true);
  expect(await (await fetch(`${proxy.url}/json/version`)).json()).toHaveProperty('webSocketDebuggerUrl');
  await browser.close();
  await endless;
  const raw = await RawClient.open();
  // A file of 12 MB in base64. Playwright itself needs far longer to put one into a page.
  const answer = await raw.call('Browser', 'newContext', { bytes: 'A'.repeat(16_000_000) });
  expect(answer).toHaveProperty('result');
  const end = once(raw.socket, 'close');
  raw.socket.send(`{"id":99,"guid":"","method":"initialize","params":{"a":[${'[],'.repeat(500_000)}0]}}`);
  const [code, reason] = await end;
  expect(`${code} ${String(reason)}`).toContain('1009 A message may have 500,000 values and names.');
  expect(await contextsOf()).toEqual([]);
});

it('reaches exposed hosts through this machine, also by WebSockets and next to allowedHosts, and no others', async () => {
  await using site = await Site.open((request, response) =>
    response.end(request.url === '/json' ? '{"from":"site"}' : 'on this machine'),
  );
  new WebSocketServer({ server: site.server }).on('connection', (socket) => socket.send('by a WebSocket'));
  const app = site.as('localhost');
  const { host } = new URL(app);
  const seen: string[] = [];
  const onEvent: ProxyOptions['onEvent'] = (event) => {
    if (event.type === 'host-exposed' || event.type === 'request-refused')
      seen.push(`${event.type} ${event.host}`);
  };
  await start({ exposeNetwork: host, allowedHosts: 'example.test', onEvent });
  const browser = await chromium.connect(proxy.playwrightUrl!);
  const context = await browser.newContext({ baseURL: app });
  const page = await context.newPage();
  await page.route('**/json', async (route) => route.fulfill({ response: await route.fetch() }));
  await page.goto('/');
  expect(await page.evaluate(LOADS)).toEqual(['on this machine', 'site', 'by a WebSocket']);
  await expect(page.goto('http://other.localhost:8080/')).rejects.toThrow('ERR_PROXY_CONNECTION_FAILED');
  await expect.poll(() => seen).toEqual([`host-exposed ${host}`, 'request-refused other.localhost:8080']);
  await browser.close();
});

/** What a page of the site loads: itself, data, and a message of a WebSocket. */
const LOADS = `Promise.all([
  document.body.innerText,
  fetch('/json').then((response) => response.json()).then(({ from }) => from),
  new Promise((resolve) => {
    const socket = new WebSocket('ws://' + location.host);
    socket.onmessage = ({ data }) => resolve(data);
    socket.onclose = ({ code }) => resolve(code);
  }),
])`;

it.each([
  ['another browser', {}, () => firefox.connect(proxy.playwrightUrl!), /400 [^]*asks for "firefox"/],
  [
    'another version',
    {},
    () => chromium.connect(proxy.playwrightUrl!, { headers: { 'user-agent': 'Playwright/1.60.0 (x64)' } }),
    /428 [^]*The client is Playwright 1\.60\.0, and the server side is Playwright \d+\.\d+\.\d+/,
  ],
  [
    'exposeNetwork of the client',
    {},
    () => chromium.connect(proxy.playwrightUrl!, { exposeNetwork: '*' }),
    /400 [^]*--expose-network/,
  ],
  [
    'a client without a secret',
    { secret: false },
    () => chromium.connect(`${proxy.url.replace('http', 'ws')}/playwright`),
    /403 [^]*needs a secret/,
  ],
])('refuses %s before it leases a browser, and says why', async (_what, options, connect, message) => {
  await start(options);
  await expect(connect()).rejects.toThrow(message);
  expect(events.map(({ type }) => type)).toEqual(['refused']);
});

it('tells a client of CDP that the address is of another protocol', async () => {
  await start();
  const response = await fetch(`${proxy.url}/playwright/json/version`);
  expect([response.status, await response.text()]).toEqual([404, expect.stringContaining('another name')]);
});

it.each([
  [
    'no playwright-core',
    [],
    '',
    'Start pooled-browser in a folder of the project that has it, or install it: npm i',
  ],
  [
    'one without bind',
    ['playwright-core'],
    '1.58.2',
    "is 1.58.2, and Playwright's own protocol needs 1.59.0 or newer",
  ],
  // Beside it, a newer playwright-core would be of another version than the runner.
  [
    'a runner without bind',
    ['playwright-core', '@playwright/test'],
    '1.58.2',
    'npm install @playwright/test@latest',
  ],
])(
  'has no playwrightUrl in a folder with %s, and the address says why',
  async (_what, packages, version, reason) => {
    const folder = mkdtempSync(join(tmpdir(), 'project-'));
    for (const name of packages) {
      const manifest = join(folder, 'node_modules', name, 'package.json');
      mkdirSync(dirname(manifest), { recursive: true });
      writeFileSync(manifest, JSON.stringify({ name, version }));
    }
    await startIn(folder);
    expect(proxy.playwrightUrl).toBeUndefined();
    const response = await fetch(`${proxy.url}/playwright`);
    expect([response.status, await response.text()]).toEqual([501, expect.stringContaining(reason)]);
  },
);

it('gives the reason if the server side of Playwright fails', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'project-'));
  const broken = join(folder, 'node_modules', 'playwright-core');
  mkdirSync(broken, { recursive: true });
  const { version } = JSON.parse(readFileSync('node_modules/playwright-core/package.json', 'utf8')) as {
    version: string;
  };
  writeFileSync(join(broken, 'package.json'), JSON.stringify({ name: 'playwright-core', version }));
  const program =
    'exports.chromium = { connectOverCDP: async () => { throw new Error("no such file: a.js"); } };';
  writeFileSync(join(broken, 'index.js'), program);
  await startIn(folder);
  await expect(chromium.connect(proxy.playwrightUrl!)).rejects.toThrow(
    /502 [^]*The server side of Playwright failed: no such file: a\.js/,
  );
});

/** The contexts of the browser for its next lease. */
const contextsOf = () =>
  look(used.pool, async ({ cdp_ws_url }) => {
    const browser = await chromium.connectOverCDP(cdp_ws_url);
    const cdp = await browser.newBrowserCDPSession();
    const { browserContextIds } = await cdp.send('Target.getBrowserContexts');
    await browser.close();
    return browserContextIds;
  });

interface Answer {
  result?: Record<string, unknown>;
  error?: { error: { message: string } };
}

/** A client that sends any message. */
class RawClient {
  readonly socket: WebSocket;
  /** All that the server has sent. */
  text = '';
  readonly #objects: { type: string; guid: string }[] = [{ type: 'Root', guid: '' }];
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #id = 0;

  /**
   * @param first Sent together with the message that initializes the client.
   * @param before Sent before it.
   */
  static async open(first?: object, before?: object): Promise<RawClient> {
    const raw = new RawClient(new WebSocket(proxy.playwrightUrl!));
    await once(raw.socket, 'open');
    const params = { sdkLanguage: 'javascript' };
    if (before) raw.socket.send(JSON.stringify({ metadata: {}, ...before }));
    const initialized = raw.call('Root', 'initialize', params);
    if (first) raw.socket.send(JSON.stringify({ id: 1000, metadata: {}, ...first }));
    await initialized;
    return raw;
  }

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('message', (data) => {
      this.text += String(data);
      const { id, method, params, ...answer } = JSON.parse(String(data));
      if (method === '__create__') this.#objects.push(params);
      this.#waiting.get(id)?.(answer);
    });
  }

  get lastId(): number {
    return this.#id;
  }

  guid(type: string): string {
    return this.#objects.findLast((one) => one.type === type)?.guid ?? `no ${type}`;
  }

  /** Calls a method of the last object of a type. */
  call(type: string, method: string, params: object = {}): Promise<Answer> {
    const message = { id: ++this.#id, guid: this.guid(type), method, params, metadata: {} };
    return this.send(JSON.stringify(message), message.id);
  }

  send(text: string, id: number): Promise<Answer> {
    const answer = new Promise<Answer>((resolve) => this.#waiting.set(id, resolve));
    this.socket.send(text);
    return answer;
  }

  /** Opens a page. */
  async newPage(): Promise<void> {
    await this.call('Browser', 'newContext', {});
    await this.call('BrowserContext', 'newPage');
  }
}

type Attack = (raw: RawClient) => Promise<Answer>;
const secretFile = () => join(bait, 'secret.txt');
const input = async (raw: RawClient, params: object) => {
  await raw.call('Frame', 'setContent', { html: '<input type=file multiple>', waitUntil: 'load' });
  return raw.call('Frame', 'setInputFiles', { selector: 'input', strict: true, timeout: 5000, ...params });
};
const cdp = async (raw: RawClient, method: string, params: object) => {
  await raw.call('BrowserContext', 'newCDPSession', { page: { guid: raw.guid('Page') } });
  return raw.call('CDPSession', 'send', { method, params });
};
const artifact = async (raw: RawClient, method: string, params: object) => {
  await raw.call('Tracing', 'harStart', { options: {} });
  await raw.call('Tracing', 'harExport', { mode: 'archive' });
  return raw.call('Artifact', method, params);
};

/** Each tries to make this process read or write a file, start a program or open a connection. */
const REFUSED: Readonly<Record<string, Attack>> = {
  'LocalUtils.zip': (raw) =>
    raw.call('LocalUtils', 'zip', {
      zipFile: join(bait, 'out.zip'),
      entries: [{ name: 'a', value: secretFile() }],
      mode: 'write',
      includeSources: false,
    }),
  'LocalUtils.harOpen': (raw) => raw.call('LocalUtils', 'harOpen', { file: secretFile() }),
  'LocalUtils.harUnzip': (raw) =>
    raw.call('LocalUtils', 'harUnzip', { zipFile: secretFile(), harFile: join(bait, 'out') }),
  'LocalUtils.connect': (raw) => raw.call('LocalUtils', 'connect', { endpoint: 'ws://127.0.0.1:9' }),
  'BrowserType.launch': (raw) =>
    raw.call('BrowserType', 'launch', { executablePath: '/bin/sh', args: [], timeout: 5000 }),
  'BrowserType.launchPersistentContext': (raw) =>
    raw.call('BrowserType', 'launchPersistentContext', { userDataDir: join(bait, 'out'), timeout: 5000 }),
  'BrowserType.connectOverCDP': (raw) =>
    raw.call('BrowserType', 'connectOverCDP', { endpointURL: 'http://127.0.0.1:9', timeout: 5000 }),
  'Electron.launch': (raw) => raw.call('Electron', 'launch', { executablePath: '/bin/sh', timeout: 5000 }),
  'Android.devices': (raw) => raw.call('Android', 'devices'),
  'Playwright.newRequest': (raw) => raw.call('Playwright', 'newRequest', { tracesDir: join(bait, 'out') }),
  'Browser.startServer': (raw) => raw.call('Browser', 'startServer', { title: 'mine', host: '0.0.0.0' }),
  'BrowserContext.showRecorder': (raw) =>
    raw.call('BrowserContext', 'showRecorder', { mode: 'recording', outputFile: join(bait, 'out.js') }),
  'BrowserContext.createTempFiles with a path': (raw) =>
    raw.call('BrowserContext', 'createTempFiles', { items: [{ name: `../../${bait}/out` }] }),
  'BrowserContext.createTempFiles with an absolute path': (raw) =>
    raw.call('BrowserContext', 'createTempFiles', { items: [{ name: join(bait, 'out') }] }),
  'Debugger.runTo': (raw) => raw.call('Debugger', 'runTo', { location: { file: secretFile() } }),
  'Tracing.tracingStart with a path': (raw) =>
    raw.call('Tracing', 'tracingStart', { name: `../../../../../${bait}/out` }),
  'Tracing.tracingStartChunk with a path': async (raw) => {
    await raw.call('Tracing', 'tracingStart', {});
    return raw.call('Tracing', 'tracingStartChunk', { name: `../../../../../${bait}/out` });
  },
  'Artifact.saveAs': (raw) => artifact(raw, 'saveAs', { path: join(bait, 'out') }),
  'Artifact.pathAfterFinished': (raw) => artifact(raw, 'pathAfterFinished', {}),
  'Frame.setInputFiles with localPaths': (raw) => input(raw, { localPaths: [secretFile()] }),
  'Frame.setInputFiles with localDirectory': (raw) => input(raw, { localDirectory: bait }),
  'Frame.setInputFiles with an escaped name': async (raw) => {
    const call = { id: 99, guid: raw.guid('Frame'), method: 'setInputFiles', params: {}, metadata: {} };
    const params = `{"selector":"input","timeout":5000,"local\\u0050aths":["${secretFile()}"]}`;
    return raw.send(JSON.stringify(call).replace('"params":{}', `"params":${params}`), 99);
  },
  'CDP: DOM.setFileInputFiles': (raw) =>
    cdp(raw, 'DOM.setFileInputFiles', { files: [secretFile()], nodeId: 1 }),
  'CDP: Input.dispatchDragEvent': (raw) =>
    cdp(raw, 'Input.dispatchDragEvent', {
      type: 'drop',
      x: 1,
      y: 1,
      data: { items: [], files: [secretFile()], dragOperationsMask: 1 },
    }),
  'CDP: Browser.setDownloadBehavior': (raw) =>
    cdp(raw, 'Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: bait }),
  'APIRequestContext.fetch with an unknown parameter for a file': (raw) =>
    raw.call('APIRequestContext', 'fetch', {
      url: 'http://127.0.0.1:9',
      bodyFile: secretFile(),
      timeout: 5000,
    }),
  'a method of a later version': (raw) => raw.call('BrowserContext', 'exportTo', { place: bait }),
  'CDP: a command in a command': (raw) => cdp(raw, 'Target.sendMessageToTarget', { message: '{}' }),
};

describe('a client of the protocol has no path to this machine:', () => {
  const isUntouched = (raw: RawClient) => {
    expect(readdirSync(bait)).toEqual(['secret.txt']);
    expect(raw.text).not.toContain(SECRET);
  };

  it('calls that are refused', async () => {
    await start();
    const raw = await RawClient.open();
    await raw.newPage();
    for (const [name, attack] of Object.entries(REFUSED)) {
      const { error } = await attack(raw);
      expect(error?.error.message, name).toMatch(/is refused: this address gives a browser|has been closed/);
    }
    isUntouched(raw);
    const { result } = await raw.call('Frame', 'title', { timeout: 5000 });
    expect(result).toEqual({ value: '' });
    await endsWaits(raw);
    raw.socket.close();
  });

  /** A message that would end this process: the server throws for a reason that is no text. */
  const endsWaits = async (raw: RawClient) => {
    const waiting = raw.call('Frame', 'waitForTimeout', { waitTimeout: 60_000 });
    const abort = { method: '__abort__', params: { id: raw.lastId, reason: { toString: 1 } } };
    for (let i = 0; i < 2; i++) raw.socket.send(JSON.stringify({ guid: raw.guid('Frame'), ...abort }));
    expect((await waiting).error?.error.message).toBe('The operation was aborted');
  };

  it("an object whose id can be guessed, and the browser's own context, by an answer with the id of the message that initializes the client", async () => {
    await start();
    const zip = { zipFile: join(bait, 'out.zip'), entries: [], mode: 'write', includeSources: false };
    const params = { sdkLanguage: 'javascript' };
    const raw = await RawClient.open(
      { guid: 'localUtils', method: 'zip', params: zip },
      // Refused by the server at once.
      { id: 1, guid: '', method: 'waitForEventInfo', params },
    );
    await expect.poll(() => raw.guid('Browser')).not.toBe('no Browser');
    await raw.newPage();
    isUntouched(raw);
    expect(raw.text.match(/"__create__","params":\{"type":"BrowserContext"/g)).toHaveLength(1);
    raw.socket.close();
  });

  it('folders of videos and HAR files, which Playwright would create', async () => {
    await start();
    const raw = await RawClient.open();
    await raw.call('Browser', 'newContext', { recordVideo: { dir: join(bait, 'videos') } });
    await raw.call('BrowserContext', 'newPage');
    const options = {
      harPath: join(bait, 'out.har'),
      resourcesDir: join(bait, 'resources'),
      content: 'attach',
    };
    await raw.call('Tracing', 'harStart', { options });
    await raw.call('Frame', 'goto', { url: titled('a'), timeout: 5000, waitUntil: 'load' });
    await raw.call('Tracing', 'harExport', { mode: 'archive' });
    await raw.call('BrowserContext', 'close', {});
    isUntouched(raw);
    raw.socket.close();
  });

  it('messages that would end this process', async () => {
    await start();
    const texts = [
      'null',
      'no JSON',
      '{"id":1,"guid":"","method":"__abort__","params":1}',
      '{"guid":"a","method":"b"}',
    ];
    for (const text of texts) {
      // Its browser has one client at a time.
      await expect.poll(() => proxy.counts).toMatchObject({ connected: 0 });
      const socket = new WebSocket(`${proxy.playwrightUrl}/alice`);
      await once(socket, 'open');
      socket.send(text);
      expect(await once(socket, 'close'), text).toEqual([1007, expect.anything()]);
    }
    await expect.poll(() => proxy.counts).toMatchObject({ connected: 0, leased: 1 });
  });
});
