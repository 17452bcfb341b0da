/**
 * The localhost that a leased browser shows with `exposeNetwork`, compared with the one of a browser of this machine, load by
 * load: what the page, the automation library and the server see. The table in the guide is made from these rows: run the
 * test with `UPDATE_GUIDE=1` after a change.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { format, resolveConfig } from 'prettier';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as playwright from '../../../src/playwright.js';
import type { PooledBrowser } from '../../../src/index.js';
import { useLocalPool } from '../../support/local.js';
import { LocalhostApp } from '../../support/localhost-app.js';

const here = useLocalPool();
/** Its browsers do not reach the servers of this machine by the name localhost. */
const elsewhere = useLocalPool({
  args: ['--host-resolver-rules=MAP localhost 127.0.0.1:9, MAP *.localhost 127.0.0.1:9'],
});

interface Trial {
  browser: Browser;
  context: BrowserContext;
  page: Page;
  /** The origin of the app. */
  at: string;
  /** The app at the host of another site. */
  other: string;
  /** Runs an async function in the page, as a text. Its error is its result. */
  inPage(code: string): Promise<unknown>;
  /** Opens a page in a further context. */
  open(options: BrowserContextOptions): Promise<Page>;
  app: LocalhostApp;
}

/** Returns what each side sees. */
type Load = (trial: Trial) => Promise<unknown>;
/** A reason: this load differs from a local browser. */
type Row = [load: string, run: Load, reason?: string];

const ofFetch = (
  request: string,
) => `const r = await fetch(${request}); return [r.status, r.statusText, r.type,
  r.redirected, r.url.replace(/^\\w+:..[^/]*/, ''), [...r.headers].filter(([n]) => !/date|keep-alive|connection/.test(n)), await r.text()]`;

const text =
  (path: string): Load =>
  async ({ inPage }) =>
    inPage(ofFetch(`'${path}'`));

/** The error of a navigation, without the address. */
const openFails = async (page: Page, url: string, waitUntil: 'load' | 'commit' = 'load') =>
  page.goto(url, { waitUntil }).then(
    (response) => response?.status(),
    (error: Error) => /net::\w+/.exec(error.message)?.[0] ?? error.message.split('\n')[0],
  );

/** The name, the failure and the size of a download. */
async function downloaded(page: Page, start: () => Promise<unknown>): Promise<unknown[]> {
  const [download] = await Promise.all([page.waitForEvent('download'), start().catch(() => {})]);
  const failure = await download.failure();
  const size = failure === null ? statSync(await download.path()).size : undefined;
  return [download.suggestedFilename(), new URL(download.url()).pathname, failure, size];
}

const socket = (url: string, then: string) => `return new Promise((resolve) => {
  const seen = []; const socket = new WebSocket(${url}); socket.binaryType = 'arraybuffer';
  const see = (...what) => seen.push(what);
  socket.onopen = () => { see('open', socket.protocol, socket.extensions !== undefined, socket.readyState); ${then} };
  socket.onmessage = ({ data, origin }) => { see('message', typeof data === 'string' ? data : new Uint8Array(data).join().slice(0, 50), data.byteLength ?? data.length); next?.(data); };
  socket.onerror = () => see('error');
  socket.onclose = ({ code, reason, wasClean }) => { see('close', code, reason, wasClean); resolve(seen); };
  var next = () => socket.close(1000, 'done');
})`;

/** What the server received, request by request, without what the browser adds only to its own connections and what is random. */
const received = ({ app }: Trial) =>
  app.headers
    .map(([request, headers]) => [
      request,
      headers
        .filter((one) => !/^(sec-fetch-|cache-control: max-age|sec-websocket-key|(if|x-random)-)/.test(one))
        .map((one) =>
          one
            .replace(/boundary=.*/, 'boundary')
            .replace(/:\d{4,5}\b/, '')
            .replace(/(: gzip, deflate, br), zstd$/, '$1'),
        )
        .sort(),
    ])
    .sort((one, other) => (String(one) < String(other) ? -1 : 1));

/** Waits until a number of requests has arrived, and for those that follow: until nothing arrives for some time. */
async function arrived({ app }: Pick<Trial, 'app'>, paths: readonly string[]): Promise<void> {
  for (const path of paths) await expect.poll(() => app.headers.map(String).join(' ')).toContain(path);
  for (let before = -1; before < app.headers.length; await delay(500)) before = app.headers.length;
}

const ROWS: Record<string, Row[]> = {
  'What a server receives: each header': [
    [
      'a document and what it loads: styles, scripts, fonts, images, media, frames, prefetch',
      async (trial) => {
        await trial.page.goto(`${trial.at}/loads`);
        await arrived(
          trial,
          [
            '/late.js?s',
            '/sound.wav?v',
            '/text?f',
            '/pixel.gif?b',
            '/text?prefetch',
            '/late.js?m',
            '/font.woff2 ',
            '/pixel.gif?svg',
          ].map((one) => one.trim()),
        );
        return received(trial);
      },
    ],
    [
      'fetch and XMLHttpRequest by each method, a preflight, a redirect, beacon and keepalive',
      async (trial) => {
        await trial.page.goto(`${trial.at}/set-cookies`);
        await trial.inPage(`for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
            await fetch('/headers?' + method, { method });
            if (!/GET|HEAD/.test(method)) await fetch('/headers?body-' + method, { method, body: 'text' });
            await new Promise((resolve) => { const x = new XMLHttpRequest(); x.open(method, '/headers?xhr-' + method); x.onloadend = resolve; x.send(/GET|HEAD/.test(method) ? null : 'ü'); });
          }
          const form = new FormData(); form.append('a', new Blob(['b']));
          for (const body of [form, new URLSearchParams('a=b'), new Blob(['c'], { type: 'x/y' }), new Uint8Array(3), ''])
            await fetch('/headers?kind', { method: 'POST', body });
          await fetch('${trial.other}/cors', { method: 'PUT', headers: { 'x-allowed': '1' }, body: 'text' });
          await fetch('${trial.other}/cors', { credentials: 'include' });
          await fetch('${trial.other}/headers', { mode: 'no-cors', referrerPolicy: 'unsafe-url' });
          await fetch('/redirect307', { method: 'POST', body: 'kept' });
          await fetch('/headers?options', { headers: { accept: 'a/b', 'accept-language': 'fr', 'x-empty': '', range: 'bytes=0-1', 'x-two': 'a, b' }, referrer: '', credentials: 'omit' });
          navigator.sendBeacon('/headers?beacon', 'b'); navigator.sendBeacon('/headers?beacon-blob', new Blob(['b'], { type: 'text/plain' }));
          void fetch('/headers?keepalive', { method: 'POST', body: 'a', keepalive: true });`);
        await arrived(trial, ['?keepalive', '?beacon-blob']);
        return received(trial);
      },
    ],
    [
      'forms',
      async (trial) => {
        for (const id of ['url', 'file', 'get']) {
          await trial.page.goto(`${trial.at}/forms`);
          await trial.page.click(`#${id} button`);
          await trial.page.waitForLoadState();
        }
        return received(trial);
      },
    ],
    [
      'workers, shared workers and service workers: their scripts, and what these load',
      async (trial) => {
        await trial.inPage(`const said = (target) => new Promise((resolve) => (target.onmessage = ({ data }) => resolve(data)));
          const worker = new Worker('/worker.js'); worker.postMessage('/headers?worker'); await said(worker);
          const module = new Worker('/module.js', { type: 'module' });
          await said(new SharedWorker('/shared.js').port);
          await navigator.serviceWorker.register('/service.js'); await navigator.serviceWorker.ready;
          if (!navigator.serviceWorker.controller) await new Promise((resolve) => (navigator.serviceWorker.oncontrollerchange = resolve));
          await (await fetch('/text', { headers: { 'x-own': '1' } })).text();`);
        await arrived(trial, ['/late.js']);
        return received(trial);
      },
    ],
    [
      'EventSource and WebSocket, of a page and a worker, also with another user agent and language',
      async (trial) => {
        const load = `const wait = (target, type) => new Promise((resolve) => (target['on' + type] = resolve)); const source = new EventSource('ORIGIN/events?NAME');
          await wait(source, 'message'); source.close(); const socket = new WebSocket('ORIGIN/socket'.replace('http', 'ws'), ['second']); await wait(socket, 'open'); socket.close(); await wait(socket, 'close');`;
        const both = (at: string) =>
          `(async () => { const code = ${JSON.stringify(`(async () => { ${load} postMessage(0); })()`)}; ${load}
          const worker = new Worker(URL.createObjectURL(new Blob([code.replaceAll('ORIGIN', location.origin).replace('NAME', 'worker-' + navigator.userAgent.length)]))); await wait(worker, 'message'); })()`.replace(
            load,
            load.replaceAll('ORIGIN', at).replace("?NAME'", "?' + navigator.userAgent.length"),
          );
        await trial.page.goto(`${trial.at}/set-cookies`);
        await trial.page.evaluate(both(trial.at));
        const page = await trial.open({
          userAgent: 'Agent/1',
          locale: 'de-CH',
          extraHTTPHeaders: { 'x-extra': 'yes' },
        });
        await page.goto(`${trial.at}/text`);
        await page.evaluate(both(trial.at));
        const cdp = await trial.context.newCDPSession(trial.page);
        await cdp.send('Emulation.setUserAgentOverride', {
          userAgent: 'Agent/2',
          acceptLanguage: 'fr-CH,fr',
        });
        await trial.page.reload();
        await trial.page.evaluate(both(trial.at));
        return received(trial);
      },
    ],
  ],
  'Documents and navigations': [
    [
      'a document',
      async ({ page, at, inPage }) => {
        const response = await page.goto(`${at}/`);
        return [
          response?.status(),
          response?.statusText(),
          await page.title(),
          await inPage(
            'return [isSecureContext, origin, document.referrer, performance.getEntriesByType("navigation")[0].responseStatus]',
          ),
        ];
      },
    ],
    [
      'redirects (301, 302), with cookies',
      async ({ page, at, context }) => {
        const response = await page.goto(`${at}/redirect`);
        const chain = [];
        for (let one = response?.request() ?? null; one; one = one.redirectedFrom()) {
          const answer = await one.response();
          chain.push([one.url(), answer?.status(), await answer?.headerValues('set-cookie')]);
        }
        return [chain, (await context.cookies()).map(({ name, value, httpOnly }) => [name, value, httpOnly])];
      },
    ],
    ['an endless redirect', async ({ page, at }) => openFails(page, `${at}/loop`)],
    [
      'meta refresh',
      async ({ page, at }) => {
        await page.goto(`${at}/refresh`);
        await page.waitForURL('**/text');
        return page.innerText('body');
      },
    ],
    [
      'statuses 204, 404 and 499',
      async ({ page, at }) => [
        await openFails(page, `${at}/204`),
        await openFails(page, `${at}/404`),
        await openFails(page, `${at}/499`),
      ],
    ],
    [
      'forms: urlencoded, get, and multipart with files',
      async ({ page, at }) => {
        const found = [];
        for (const [id, url] of [
          ['url', '**/echo'],
          ['get', '**/text*'],
        ] as const) {
          await page.goto(`${at}/forms`);
          await page.click(`#${id} button`);
          await page.waitForURL(url);
          found.push(page.url(), await page.innerText('body'));
        }
        await page.goto(`${at}/forms`);
        const file = (name: string, size: number) => ({
          name,
          mimeType: 'text/plain',
          buffer: Buffer.alloc(size, 'x'),
        });
        await page.setInputFiles('input[type=file]', [file('ä "1".txt', 10), file('2.txt', 500_000)]);
        await page.click('#file button');
        await page.waitForURL('**/echo');
        return [...found, await page.innerText('body')];
      },
    ],
    [
      'subresources: styles, modules, images, frames, media',
      async ({ page, at, inPage, app }) => {
        await page.goto(`${at}/assets`);
        await expect.poll(() => inPage('return globalThis.value')).toBe('imported');
        return [
          await inPage('return [document.images[0].naturalWidth, frames[0].document.body.innerText]'),
          [...new Set(app.log)].sort(),
        ];
      },
    ],
    [
      'Content-Security-Policy, X-Frame-Options, COOP and COEP',
      async ({ page, at, inPage }) => {
        await page.goto(`${at}/csp`);
        const ran = await inPage('return globalThis.ran');
        await page.goto(`${at}/framed`);
        const denied = page.frames()[1]?.url();
        await page.goto(`${at}/isolated`);
        return [ran, denied, await inPage('return crossOriginIsolated')];
      },
    ],
    [
      'a popup with noopener, back and forward',
      async ({ page, at, context, inPage }) => {
        await page.goto(`${at}/`);
        const opened = context.waitForEvent('page');
        await inPage('void open("/text", "", "noopener")');
        const popup = await opened;
        await popup.waitForLoadState();
        await page.goto(`${at}/text`);
        await page.goBack();
        return [await popup.innerText('body'), await page.title()];
      },
    ],
    [
      'prefetch, and preload by a header',
      async ({ page, at, app }) => {
        await page.goto(`${at}/prefetch`);
        await arrived({ app }, ['/text?prefetched']);
        await page.goto(`${at}/link-header`);
        await arrived({ app }, ['/style.css']);
        return app.log.filter((line) => !line.includes('favicon'));
      },
    ],
  ],
  'fetch and XMLHttpRequest': [
    [
      'methods and bodies',
      async ({ inPage }) => {
        const found = [];
        for (const [method, body] of [
          ['POST', '"text"'],
          ['PUT', 'new Uint8Array([0, 1, 255])'],
          ['PATCH', 'new URLSearchParams({ a: "ü" })'],
          ['DELETE', 'undefined'],
          ['POST', 'new Blob(["a", "b"], { type: "x/y" })'],
          [
            'POST',
            '(() => { const f = new FormData(); f.append("a", new File(["file"], "n.txt")); f.append("b", "c"); return f })()',
          ],
          ['ODD', 'undefined'],
          ['PATCH', 'undefined'],
          ['POST', 'undefined'],
        ])
          found.push(await inPage(ofFetch(`'/echo', { method: '${method}', body: ${body} }`)));
        return found;
      },
    ],
    [
      'HEAD of a large file, OPTIONS',
      async ({ inPage }) => [
        await inPage(ofFetch(`'/head?mb=300', { method: 'HEAD' }`)),
        await inPage(ofFetch(`'/options', { method: 'OPTIONS' }`)),
      ],
    ],
    [
      'range requests',
      async ({ inPage }) => [
        await inPage(ofFetch(`'/range', { headers: { range: 'bytes=4-12' } }`)),
        await inPage(ofFetch(`'/range'`)),
        await inPage(
          `return (await (await fetch('/headers', { headers: { range: 'bytes=0-' } })).json()).headers['accept-encoding']`,
        ),
      ],
    ],
    [
      'redirects (303, 307), modes manual and error',
      async ({ inPage }) => [
        await inPage(ofFetch(`'/redirect307', { method: 'POST', body: 'kept' }`)),
        await inPage(ofFetch(`'/redirect303', { method: 'POST', body: 'dropped' }`)),
        await inPage(ofFetch(`'/redirect307', { redirect: 'manual' }`)),
        await inPage(ofFetch(`'/redirect307', { redirect: 'error' }`)),
      ],
    ],
    [
      'XMLHttpRequest, with its events',
      async ({ inPage }) =>
        inPage(`return new Promise((resolve) => { const x = new XMLHttpRequest(); const seen = [];
      for (const name of ['loadstart', 'load', 'loadend', 'error']) x.addEventListener(name, () => seen.push(name));
      x.onloadend = () => resolve([seen, x.status, x.responseText, x.getResponseHeader('content-type')]); x.open('GET', '/text'); x.send(); })`),
    ],
    [
      'a synchronous XMLHttpRequest',
      async ({ inPage }) =>
        inPage(
          `return ['/text', '/corp?same-origin'].map((path) => { const x = new XMLHttpRequest(); x.open('GET', path, false); x.send(); return [x.status, x.responseText]; })`,
        ),
    ],
    [
      'beacon and keepalive',
      async ({ inPage, app, page }) => {
        await inPage(
          `navigator.sendBeacon('/echo?beacon', 'b'); void fetch('/echo?alive', { method: 'POST', body: 'a', keepalive: true })`,
        );
        await page.close();
        await expect.poll(() => app.log.length).toBeGreaterThan(1);
        return app.log.toSorted();
      },
    ],
    [
      'keepalive of a frame that is removed, next to a page that is busy',
      async ({ page, at, other, app, open }) => {
        const busy = await open({});
        await busy.goto(`${at}/`);
        await page.setContent(`<iframe src="${other}/text"></iframe>`);
        await expect.poll(() => page.frames()[1]?.url()).toContain('/text');
        const frame = page.frames()[1]!;
        // A synchronous request, whose response waits.
        await busy.evaluate(
          `void setTimeout(() => { const x = new XMLHttpRequest(); x.open('GET', '/held', false); x.send(); })`,
        );
        await expect.poll(() => app.log).toContain('GET /held');
        await frame.evaluate(`void fetch('/slow-redirect', { method: 'POST', body: 'a', keepalive: true })`);
        await expect.poll(() => app.log).toContain('POST /slow-redirect');
        await page.evaluate('document.querySelector("iframe").remove()');
        await expect.poll(() => app.log).toContain('POST /echo');
        await page.goto(`${at}/release`);
        return app.log.filter((line) => line.startsWith('POST'));
      },
    ],
    [
      'response phrase, repeated headers, bytes in headers',
      async ({ inPage }) => [
        await inPage(ofFetch(`'/phrase'`)),
        await inPage(ofFetch(`'/bytes-header'`)),
        await inPage(ofFetch(`'/http10'`)),
      ],
    ],
    ['a response without a phrase', text('/no-phrase')],
    ['charset of a text', text('/charset')],
    ['a slow response', text('/delayed')],
    [
      'entries of PerformanceResourceTiming',
      async ({ inPage }) =>
        inPage(`await (await fetch('/text')).text(); const t = performance.getEntriesByType('resource').at(-1);
        return [t.initiatorType, t.responseStatus, t.encodedBodySize, t.decodedBodySize, t.contentType, t.duration > 0,
          t.requestStart >= t.fetchStart, t.responseStart >= t.requestStart, t.responseEnd >= t.responseStart]`),
    ],
    [
      'the protocol, and the size that was transferred, in PerformanceResourceTiming',
      async ({ inPage }) =>
        inPage(`await (await fetch('/text')).text(); const t = performance.getEntriesByType('resource').at(-1);
        return [t.nextHopProtocol, t.transferSize > 0]`),
      'the browser measures them on its own connections',
    ],
    [
      'ports that a browser blocks',
      async ({ inPage, page }) => [
        await inPage(`return fetch('http://localhost:6666/').catch(String)`),
        await inPage(socket(`'ws://localhost:6666/'`, '')),
        await openFails(page, 'http://localhost:6666/'),
      ],
    ],
  ],
  'Responses that a browser refuses, and what it asks for': [
    [
      'a redirect without a valid location, two locations, two dispositions, and 407',
      async ({ inPage }) => {
        const found = [];
        for (const head of [
          '302 Found\nLocation: http://',
          '302 Found\nLocation: /text\nLocation: /echo',
          '200 OK\nLocation: /text\nLocation: /echo',
          '302 Found\nLocation: /text\nLocation: /text',
          '200 OK\nLocation: http://',
          '200 OK\nContent-Disposition: inline\nContent-Disposition: attachment',
          '407 Required\nProxy-Authenticate: Basic realm=a',
        ]) {
          const query = new URLSearchParams({ text: `${head}\nContent-Length: 2\n\nok` });
          found.push([head, await inPage(`return (await fetch('/raw?${query}')).status`)]);
        }
        return found;
      },
    ],
    [
      'a Content-Security-Policy after 3000 other headers',
      async ({ page, at }) => {
        await page.goto(`${at}/many-headers`);
        return page.evaluate('typeof ran');
      },
    ],
    [
      'Clear-Site-Data: cookies and storage',
      async ({ page, at, inPage, context }) => {
        await page.goto(`${at}/set-cookies`);
        await inPage(`localStorage.name = 1; await caches.open('name')`);
        const look = async () => [
          (await context.cookies()).length,
          await inPage(`return [localStorage.name, await caches.keys()]`),
        ];
        const clear = (what: string) =>
          page.goto(`${at}/any?header=${encodeURIComponent(`clear-site-data: ${what}`)}`);
        await clear('"cookies"');
        const found = await look();
        await page.goto(`${at}/set-cookies`);
        await clear('"storage", "cache"');
        return [found, await look()];
      },
    ],
    [
      'fetch: the integrity of a slow response, and only-if-cached',
      async ({ inPage, app }) => {
        const digest = `sha256-${createHash('sha256').update('first second').digest('base64')}`;
        return [
          await inPage(`return (await fetch('/slow-parts-short', { integrity: '${digest}' })).text()`),
          await inPage(
            `return (await fetch('/slow-parts-short', { integrity: 'sha256-${'A'.repeat(43)}=' })).text()`,
          ),
          await inPage(
            `return (await fetch('/text', { cache: 'only-if-cached', mode: 'same-origin' })).text()`,
          ),
          app.log,
        ];
      },
    ],
    [
      'request headers with the names of properties of objects',
      async ({ inPage, app }) => {
        await inPage(
          `await fetch('/headers?named', { headers: [['constructor', 'a'], ['prototype', 'b']] })`,
        );
        const [, all = []] = app.headers.find(([request]) => request.includes('named')) ?? [];
        return all.filter((one) => /^(constructor|prototype):/.test(one)).sort();
      },
    ],
    [
      'a reason with any bytes',
      async ({ inPage }) =>
        inPage(
          ofFetch(`'/raw?${new URLSearchParams({ text: '200 f\u00c3\u00bcr\nContent-Length: 2\n\nok' })}'`),
        ),
    ],
    [
      'what a request names of a URL: an empty query, and a user only if the server asks',
      async ({ page, at, other, inPage, app }) => {
        const named = other.replace('//', '//user:secret@');
        await page.goto(`${at}/headers?`);
        await page.goto(`${named}/headers`);
        const found = [/authorization/i.test(await page.innerText('body'))];
        await page.goto(`${at}/text`);
        await inPage(
          `const form = Object.assign(document.createElement('form'), { action: '${named}/headers', method: 'post' }); document.body.append(form); form.submit()`,
        );
        await page.waitForURL('**/headers');
        found.push(/authorization/i.test(await page.innerText('body')));
        await page.goto(`${at}/text`);
        await inPage(
          `const socket = new WebSocket('${named.replace('http', 'ws')}/socket?'); await new Promise((resolve) => (socket.onopen = socket.onerror = resolve));`,
        );
        const upgrades = app.headers.filter(([request]) => request.includes('/socket'));
        return [
          found,
          app.log,
          upgrades.map(([, all]) => all.some((one) => one.startsWith('authorization'))),
        ];
      },
    ],
  ],
  'Origins and cookies': [
    [
      'modes and credentials to another site',
      async ({ inPage, other, app, page, at, context }) => {
        await page.goto(`${other}/set-cookies`);
        await page.goto(`${at}/`);
        const found = [];
        for (const mode of ['cors', 'no-cors', 'same-origin'])
          for (const credentials of ['omit', 'same-origin', 'include'])
            found.push(
              await inPage(ofFetch(`'${other}/cookies', { mode: '${mode}', credentials: '${credentials}' }`)),
            );
        return [found, app.log, (await context.cookies()).length];
      },
    ],
    [
      'CORS: what is shown and what is refused',
      async ({ inPage, other }) => [
        await inPage(ofFetch(`'${other}/cors'`)),
        await inPage(ofFetch(`'${other}/cors-star'`)),
        await inPage(ofFetch(`'${other}/cors-star', { credentials: 'include' }`)),
        await inPage(ofFetch(`'${other}/text'`)),
      ],
    ],
    [
      'Cross-Origin-Resource-Policy',
      async ({ inPage, page, at, other }) => {
        const found = [];
        const load = (url: string) => `fetch('${url}', { mode: 'no-cors' }).then((r) => r.type, String)`;
        for (const policy of ['same-origin', 'Same-Origin', 'same-site', 'cross-origin', 'odd'])
          found.push([policy, await inPage(`return ${load(`${other}/corp?${policy}`)}`)]);
        for (const kind of [
          'src="data:text/html,CODE"',
          'srcdoc="CODE"',
          'sandbox="allow-scripts" srcdoc="CODE"',
          'src="about:blank"',
        ])
          found.push(
            await inPage(`const said = new Promise((resolve) => (onmessage = ({ data }) => resolve(data)));
              const code = "${load(`${at}/corp?same-origin`)}.then((t) => parent.postMessage(t, '*'))";
              document.body.innerHTML = ${JSON.stringify(`<iframe ${kind}></iframe>`)}.replace('CODE', '<script>' + code + '</script>');
              if (${kind.includes('blank')}) frames[0].eval(code);
              return said;`),
          );
        found.push(
          await inPage(
            `return ${load(`${other}/corp?same-origin`).replace("'no-cors'", "'no-cors', method: 'POST'")}`,
          ),
          await inPage(`const code = "onconnect = ({ ports: [port] }) => ${load(`${other}/corp?same-origin`)}.then((t) => port.postMessage(t))";
            const w = new SharedWorker(URL.createObjectURL(new Blob([code])));
            return new Promise((resolve) => (w.port.onmessage = ({ data }) => resolve(data)));`),
        );
        const far = other.replace('shop', 'api.shop');
        await page.goto(`${other}/`);
        for (const policy of ['same-site', 'same-origin'])
          found.push(await inPage(`return ${load(`${far}/corp?${policy}`)}`));
        return found;
      },
    ],
    [
      'Opaque Response Blocking: data of another site as a script',
      async ({ inPage, page, other }) => {
        const found = [];
        for (const [type, body] of [
          ['application/json', '{"name":1}'],
          ['application/json', '[1]'],
          ['application/json', '"name"'],
          ['application/ld+json', '{"name":1}'],
          ['text/html', '<!-- a --><html>ran'],
          ['text/html', '<!-- a -->\n<html>ran'],
          ['text/html', 'ran = 1'],
          ['text/xml', '<?xml version="1.0"?>'],
          ['text/plain', '{"name":1}'],
          ['text/plain', 'ran = 1'],
          ['text/csv', 'ran = 1'],
          ['text/event-stream', 'data: ran'],
          ['application/pdf', 'ran = 1'],
          ['application/x-protobuf', 'ran = 1'],
          ['application/octet-stream', 'ran = 1'],
          ['text/javascript', 'ran = 1'],
        ] as const)
          for (const header of ['x-a: b', 'x-content-type-options: nosniff']) {
            const query = new URLSearchParams({ type, body, header });
            const ran =
              await inPage(`const s = document.createElement('script'); s.src = '${other}/any?${query}';
              delete globalThis.ran; document.head.append(s);
              return new Promise((resolve) => { s.onload = s.onerror = ({ type }) => resolve([type, globalThis.ran]); })`);
            found.push([type, header, ran]);
          }
        return [await page.title(), found];
      },
    ],
    [
      'Cross-Origin-Embedder-Policy: what a document embeds',
      async ({ inPage, page, at, other }) => {
        await page.goto(`${at}/isolated`);
        const embed = (where: string) => `const load = (name, src) => new Promise((resolve) => {
            const one = Object.assign(document.createElement(name), { src }); one.onload = one.onerror = ({ type }) => resolve([name, type]); document.head.append(one); });
          const found = [await fetch('${where}&fetch', { mode: 'no-cors' }).then((r) => r.type, String),
            await load('script', '${where}&type=text/javascript&body=1'),
            await load('img', '${where}&type=image/svg%2Bxml&body=' + encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'))];
          const worker = new Worker('/any?' + new URLSearchParams([['type', 'text/javascript'], ['header', 'cross-origin-embedder-policy: require-corp'],
            ['body', "onmessage = ({ data }) => fetch(data, { mode: 'no-cors' }).then((r) => postMessage(r.type), (e) => postMessage(String(e)))"]]));
          worker.postMessage('${where}&worker');
          return [...found, await new Promise((resolve) => { worker.onmessage = ({ data }) => resolve(data); })];`;
        return [
          await inPage('return crossOriginIsolated'),
          await inPage(embed(`${other}/any?a`)),
          await inPage(
            embed(`${other}/any?header=${encodeURIComponent('cross-origin-resource-policy: cross-origin')}`),
          ),
          await inPage(
            embed(`${other}/any?header=${encodeURIComponent('cross-origin-resource-policy: same-site')}`),
          ),
          await inPage(embed(`${at}/any?a`)),
        ];
      },
    ],
    [
      'documents without credentials: `<iframe credentialless>`, Cross-Origin-Embedder-Policy: credentialless',
      async (trial) => {
        const { inPage, page, at, other, context, app } = trial;
        await page.goto(`${other}/set-cookies`);
        await page.goto(
          `${at}/any?header=${encodeURIComponent('cross-origin-embedder-policy: credentialless')}`,
        );
        const body = `<script>new WebSocket('/socket?framed').onopen = () => parent.postMessage('', '*')</script>`;
        const query = new URLSearchParams({ header: 'cross-origin-embedder-policy: require-corp', body });
        await inPage(`const image = new Image(); image.src = '${other}/headers?image';
          await new Promise((resolve) => (image.onerror = resolve));
          await fetch('${other}/headers?opaque', { mode: 'no-cors', credentials: 'include' });
          await fetch('${other}/cookies?allowed', { credentials: 'include' });
          const frame = document.createElement('iframe'); frame.credentialless = true; frame.src = '${other}/any?${query}'; document.body.append(frame);
          await new Promise((resolve) => (onmessage = resolve));`);
        const stored = (await context.cookies()).map(({ name }) => name).sort();
        return [
          app.headers.map(([request, all]) => [request, all.filter((one) => one.startsWith('cookie'))]),
          stored,
        ];
      },
    ],
    [
      'cookies that a frame without credentials sets for itself',
      async ({ inPage, page, at, other, app }) => {
        await page.goto(`${at}/`);
        const query = new URLSearchParams([
          ['header', 'set-cookie: framed=1; SameSite=None; Secure'],
          ['body', `<script>fetch('/cookies').then(() => parent.postMessage('', '*'))</script>`],
        ]);
        await inPage(`const frame = document.createElement('iframe'); frame.credentialless = true; frame.src = '${other}/any?${query}'; document.body.append(frame);
          await new Promise((resolve) => (onmessage = resolve));`);
        return app.headers.map(([request, all]) => [request, all.filter((one) => one.startsWith('cookie'))]);
      },
      'CDP has no cookies of such a frame: none are sent or stored',
    ],
    [
      'cookies that a server sets with the handshake of a WebSocket, of its own site and of another one',
      async ({ inPage, page, at, other, context }) => {
        await page.goto(`${at}/`);
        const set = [
          'plain=1',
          'http=1; HttpOnly; Path=/deep',
          'none=1; SameSite=None; Secure',
          'unsafe=1; SameSite=None',
          'strict=ü; samesite=strict; Max-Age=1000',
          'dated=1; Expires=Wed, 09 Jun 2123 10:18:14 GMT',
          'gone=1; Max-Age=0',
          'foreign=1; Domain=example.com',
          'suffix=1; Domain=localhost; SameSite=None; Secure',
          'own=1; Domain=shop.localhost; SameSite=None; Secure',
          'above=1; Domain=.shop.localhost; SameSite=None; Secure',
          '__Host-h=1; Path=/',
          'only a value',
        ];
        const query = new URLSearchParams(set.map((one) => ['set', Buffer.from(one).toString('latin1')]));
        const open = (where: string) =>
          inPage(
            `const socket = new WebSocket('${where.replace('http', 'ws')}/socket?${query}'); await new Promise((resolve) => (socket.onopen = resolve)); return document.cookie.split('; ').sort().join()`,
          );
        const far = other.replace('shop', 'api.shop');
        const shown = [await open(at), await open(other), await open(far)];
        const stored = (await context.cookies()).map((cookie) => ({
          ...cookie,
          expires: cookie.expires > 0,
        }));
        return [shown, stored.map((one) => JSON.stringify(one)).sort()];
      },
    ],
    [
      'the user agent of a WebSocket whose page names another one',
      async ({ inPage, page, at, app }) => {
        await page.goto(`${at}/text`);
        await inPage(`Object.defineProperty(Navigator.prototype, 'userAgent', { get: () => 'forged' });
          const socket = new WebSocket('/socket', ['first', 'second']); await new Promise((resolve) => (socket.onopen = resolve));`);
        return app.log;
      },
    ],
    [
      'the WebSocket of a frame with a process of its own, of the same site',
      async ({ page, at, app }) => {
        await page.goto(`${at}/set-cookies`);
        const keyed = (origin: string, body: string) =>
          `${origin}/any?${new URLSearchParams({ header: 'origin-agent-cluster: ?1', body })}`;
        const code = `<script>new WebSocket('${at.replace('http', 'ws')}/socket').onopen = () => parent.postMessage('', '*')</script>`;
        const frame = `<script>onmessage = () => (document.title = 'done')</script><iframe src="${keyed(app.origins.v6, code)}"></iframe>`;
        await page.goto(keyed(at, frame));
        await expect.poll(() => page.title()).toBe('done');
        const upgrade = app.log.find((line) => line.startsWith('upgrade'));
        return /"cookie":"[^"]*"/.exec(upgrade ?? '')?.[0];
      },
    ],
    [
      'Document-Isolation-Policy: what a document embeds',
      async ({ inPage, page, at, other }) => {
        await page.goto(
          `${at}/any?header=${encodeURIComponent('document-isolation-policy: isolate-and-require-corp')}`,
        );
        return inPage(`return fetch('${other}/any', { mode: 'no-cors' }).then((r) => r.type, String)`);
      },
      'CDP does not report this policy of a document: nothing is blocked',
    ],
    [
      'CORS: preflights',
      async ({ inPage, other, app }) => [
        await inPage(ofFetch(`'${other}/cors', { method: 'PUT', headers: { 'x-allowed': '1' } }`)),
        await inPage(ofFetch(`'${other}/cors', { method: 'PUT', headers: { 'x-refused': '1' } }`)),
        await inPage(ofFetch(`'${other}/cors', { method: 'DELETE' }`)),
        await inPage(
          ofFetch(
            `'${other}/no-preflight', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }`,
          ),
        ),
        app.log,
      ],
    ],
    [
      'private networks: a page of a public address',
      async ({ page, at, other, inPage }) => {
        await page.goto(`${other}/public`);
        return inPage(ofFetch(`'${at}/cors'`));
      },
      'the browser asks for the permission to reach a private network on its own connections only',
    ],
    [
      'cookies with every attribute',
      async ({ page, at, context, inPage }) => {
        await page.goto(`${at}/set-cookies`);
        const stored = (await context.cookies()).map((cookie) => ({
          ...cookie,
          expires: cookie.expires > 0,
        }));
        const sent = await inPage(`await import('/cookies'); return globalThis.cookies`);
        return [
          stored.sort((a, b) => (a.name < b.name ? -1 : 1)),
          await inPage('return document.cookie'),
          sent,
        ];
      },
    ],
    [
      'partitioned cookies',
      async ({ page, at, context }) => {
        await page.goto(`${at}/set-partitioned`);
        return context.cookies();
      },
      'CDP stores the cookies of such a response without their partition',
    ],
    [
      'cookies of a page of another site: SameSite',
      async ({ page, at, other, inPage }) => {
        await page.goto(`${at}/set-cookies`);
        await page.goto(`${other}/`);
        const included =
          await inPage(`const s = document.createElement('script'); s.src = '${at}/cookies'; document.head.append(s);
        await new Promise((resolve) => (s.onload = resolve)); return globalThis.cookies`);
        await inPage(
          `const f = document.createElement('form'); f.method = 'post'; f.action = '${at}/cookies'; document.body.append(f); f.submit()`,
        );
        await page.waitForURL('**/cookies');
        return [included, await page.innerText('body')];
      },
    ],
  ],
  'Large, slow and left': [
    [
      'files as attachments: 9 MB, of unknown length, and an archive',
      async ({ page, at }) => {
        const found = [];
        for (const path of ['attachment?mb=9', 'attachment-chunked?mb=3', 'archive.zip?mb=9'])
          found.push(await downloaded(page, () => page.goto(`${at}/${path}`)));
        return found;
      },
    ],
    [
      'a file of more than 64 MB in a new tab, and one of a link with a file name',
      async ({ page, at }) => {
        await page.goto(`${at}/downloads`);
        return [
          await downloaded(page, () => page.click('#new')),
          await downloaded(page, () => page.click('#named')),
        ];
      },
    ],
    [
      'a download that is cut short, and one that is canceled',
      async ({ page, at, app }) => {
        const cut = await downloaded(page, () => page.goto(`${at}/cut-attachment`));
        const [download] = await Promise.all([
          page.waitForEvent('download'),
          page.goto(`${at}/attachment?mb=1000`).catch(() => {}),
        ]);
        await download.cancel();
        const failure = await download.failure();
        await expect.poll(() => app.log).toContain('aborted /attachment?mb=1000');
        return [cut, failure];
      },
    ],
    [
      'fetch: a response of 17 MB, and the first part of one of more than 64 MB',
      async ({ inPage, app }) => {
        const sizes =
          await inPage(`const whole = (await (await fetch('/large?mb=17')).arrayBuffer()).byteLength;
          const r = await fetch('/large?mb=65'); const reader = r.body.getReader(); const { value } = await reader.read();
          await reader.cancel(); return [whole, r.headers.get('content-length'), value.length > 0];`);
        await expect.poll(() => app.log).toContain('aborted /large?mb=65');
        return sizes;
      },
    ],
    [
      'XMLHttpRequest: a response of more than 64 MB, and the first part of a response at once',
      async ({ inPage }) =>
        inPage(`const load = (path, event) => new Promise((resolve) => { const x = new XMLHttpRequest();
          x.onprogress = () => event === 'progress' && resolve(x.responseText); x.onerror = () => resolve('error'); x.onload = () => resolve(x.responseText.length); x.open('GET', path); x.send(); });
        return [await load('/large?mb=65', 'load'), await load('/slow-parts', 'progress')]`),
      'CDP carries a response as one message, of at most 100 MB in base64: only `fetch` reads in parts',
    ],
    [
      'a sound that arrives as slowly as it plays',
      async ({ inPage }) =>
        inPage(`const sound = new Audio('/slow.wav'); sound.muted = true; document.body.append(sound);
          return new Promise((resolve) => { sound.onplaying = () => resolve(Math.round(sound.duration)); sound.onerror = () => resolve('error'); setTimeout(resolve, 50_000, 'late'); void sound.play(); });`),
    ],
    [
      'a sound of 20 MB, and a jump to its end',
      async ({ page, at, inPage }) => {
        await page.goto(`${at}/`);
        return inPage(`const sound = new Audio('/sound.wav'); sound.muted = true; const on = (name) => new Promise((resolve) => { sound['on' + name] = () => resolve(name); sound.onerror = () => resolve('error'); });
          const loaded = await on('canplay'); sound.currentTime = sound.duration - 5; const jumped = await on('seeked'); sound.currentTime = 100; return [loaded, Math.round(sound.duration), jumped, await on('seeked')];`);
      },
    ],
    [
      'uploads of 2 MB: bytes, and a Blob',
      async ({ inPage }) => [
        await inPage(ofFetch(`'/echo', { method: 'POST', body: new Uint8Array(2_000_000).fill(97) }`)),
        await inPage(ofFetch(`'/echo', { method: 'POST', body: new Blob([new Uint8Array(2_000_000)]) }`)),
      ],
    ],
    [
      'a stream as the body of an upload',
      async ({ inPage }) =>
        inPage(ofFetch(`'/echo', { method: 'POST', duplex: 'half', body: new Blob(['streamed']).stream() }`)),
    ],
    [
      'fetch: a response in parts of any status, its headers and errors, in a page that replaces what is usual',
      async ({ inPage }) =>
        inPage(`const get = (query, options) => fetch(new Request('/slow-named?a' + query, options)); const seen = [];
          for (const status of [999, 205]) { const r = await get('&status=' + status); seen.push([r.status, r.ok, r.type, (await r.arrayBuffer()).byteLength]); }
          const { stringify } = JSON; JSON.stringify = () => '{}'; Object.prototype.get = () => 5;
          try { seen.push((await (await get('#part')).blob()).size); } finally { JSON.stringify = stringify; delete Object.prototype.get; }
          const r = await get(''); try { r.headers.set('a', 'b'); } catch (error) { seen.push(String(error)); }
          seen.push(await r.json().catch(String), await r.json().catch(String));
          const abort = new AbortController(); const kept = await fetch(new Request('/slow-named', { signal: abort.signal }), { signal: null });
          abort.abort(); return [...seen, (await kept.text()).length];`),
    ],
    [
      'fetch: a response in parts, its first part at once, and what the library sees of it',
      async ({ inPage, page }) => {
        const found = [];
        for (const path of ['/slow-parts', '/slow-named']) {
          const arrived = page.waitForResponse(`**${path}`);
          const seen =
            await inPage(`const r = await fetch('${path}'); const reader = r.body.getReader(); const seen = [];
            for (let part; !(part = await reader.read()).done; ) seen.push(new TextDecoder().decode(part.value));
            return [seen, r.url === location.origin + '${path}', r.type, r.redirected, r.status, [...r.headers].filter(([n]) => !/date|keep-alive|connection/.test(n)), r.bodyUsed, r instanceof Response];`);
          found.push([seen, await (await arrived).text()]);
        }
        return found;
      },
    ],
    [
      'a document in parts: its first part at once',
      async ({ page, at }) => {
        await page.goto(`${at}/document-parts`, { waitUntil: 'commit' });
        return page.innerText('body');
      },
      'CDP has no command that delivers a response in parts: only `fetch` reads in parts',
    ],
    [
      'fetch: a stream of events, in a page, a worker, and of another site',
      async ({ inPage, other }) => {
        const read = (
          url: string,
        ) => `const r = await fetch('${url}', { headers: { accept: 'text/event-stream' }, credentials: 'include' });
          const reader = r.body.pipeThrough(new TextDecoderStream()).getReader(); const parts = [];
          while (parts.length < 9) parts.push((await reader.read()).value);
          await reader.cancel(); return [r.type, [...r.headers.keys()].filter((n) => /stream|expose/.test(n)), parts.slice(0, 8).join('').slice(0, 150)];`;
        return [
          await inPage(read('/events')),
          await inPage(read(`${other}/events`)),
          await inPage(`const code = "(async () => { ${read('ORIGIN/events').replaceAll('"', "'").replaceAll('\n', ' ')} })().then(postMessage, (e) => postMessage(String(e)))".replace('ORIGIN', location.origin);
            const w = new Worker(URL.createObjectURL(new Blob([code]))); return new Promise((resolve) => (w.onmessage = ({ data }) => resolve(data)));`),
        ];
      },
    ],
    [
      'fetch: a response without an end, that is aborted, canceled, copied, or left',
      async ({ inPage, page, at, app }) => {
        const seen =
          await inPage(`const a = new AbortController(); const r = await fetch('/never-ends?1', { signal: a.signal });
          const first = new TextDecoder().decode((await r.clone().body.getReader().read()).value);
          setTimeout(() => a.abort(), 200); const why = await r.text().catch((e) => e.name);
          const unused = new AbortController();
          const other = await fetch(new Request('/never-ends?2', { signal: unused.signal }), { signal: null }); unused.abort();
          const reader = other.body.getReader(); const kept = new TextDecoder().decode((await reader.read()).value); await reader.cancel();
          void (await fetch('/never-ends?3')).text();
          return [first, why, kept, other.bodyUsed];`);
        await page.goto(`${at}/text`);
        for (const one of [1, 2, 3]) await expect.poll(() => app.log).toContain(`aborted /never-ends?${one}`);
        return seen;
      },
    ],
    [
      'fetch: a server that sends without an end waits for a page that does not read',
      async ({ inPage, app }) => {
        const [before, later] =
          (await inPage(`const a = new AbortController(); const r = await fetch('/flood', { signal: a.signal });
          const taken = () => new Promise((resolve) => setTimeout(async () => resolve(Number(await (await fetch('/flooded')).text())), 1000));
          let before; let later = await taken();
          do { before = later; later = await taken(); } while (later !== before && later < 100);
          a.abort(); return [before, later];`)) as number[];
        await expect.poll(() => app.log).toContain('aborted /flood');
        return [before! > 0 && before! < 100, later === before];
      },
    ],
    [
      'an upload to a server that does not read: its abort',
      async ({ inPage, app }) => {
        const name = await inPage(`const a = new AbortController(); setTimeout(() => a.abort(), 1500);
          return fetch('/stuck', { method: 'POST', body: new Uint8Array(3_000_000), signal: a.signal }).catch((error) => error.name)`);
        await expect.poll(() => app.log).toContain('aborted /stuck');
        return name;
      },
    ],
    [
      'a stream of events (EventSource)',
      async ({ inPage }) =>
        inPage(`return new Promise((resolve) => { const s = new EventSource('/events'); const seen = [];
      s.onopen = () => seen.push('open'); s.onerror = () => seen.push('error'); s.onmessage = ({ data, lastEventId }) => { seen.push([data, lastEventId]); if (seen.length > 12) { s.close(); resolve(seen); } } })`),
    ],
    [
      'a stream of events that stays open: each event at once, over one connection',
      async ({ inPage, app, context }) => {
        const seen =
          await inPage(`const s = new EventSource('/live'); const seen = []; const see = (...what) => seen.push([...what, s.readyState]);
          s.onopen = () => see('open'); s.onerror = () => see('error'); s.onmessage = ({ data, lastEventId }) => see(data, lastEventId);
          s.addEventListener('named', ({ type, data, lastEventId, origin }) => see(type, data, lastEventId, origin === location.origin));
          const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
          const until = async (count) => { for (let wait = 0; seen.length < count && wait < 600; wait++) await pause(50); };
          const send = async (count, text, query = '') => { await fetch('/send?text=' + encodeURIComponent(text) + query); await until(count); };
          await until(1);
          await send(2, 'data: one\\n\\n'); await send(3, 'id: 7\\ndata: two\\ndata: lines\\n\\n'); await send(4, 'event: named\\r\\ndata: ü\\r\\n\\r\\n');
          await send(4, 'data: in'); await pause(300); await send(5, ' parts\\n\\n'); await pause(1500); await send(6, 'id\\ndata: later\\n\\n');
          await send(9, 'data: last\\n\\n', '&end'); await send(10, 'data: again\\n\\n');
          s.close(); seen.push(s.readyState); return seen;`);
        await expect
          .poll(() => app.log.filter((line) => line === 'aborted /live').length, { timeout: 12_000 })
          .toBe(1);
        return [seen, app.log.filter((line) => line.includes('live')), (await context.cookies()).length];
      },
    ],
    [
      'a stream of events in a worker, and of another site',
      async ({ inPage, other }) =>
        inPage(`const code = "const s = new EventSource('" + location.origin + "/events'); const seen = []; s.onerror = () => seen.push('error'); s.onmessage = ({ data }) => { seen.push(data); if (seen.length > 10) { s.close(); postMessage(seen); } }";
        const w = new Worker(URL.createObjectURL(new Blob([code])));
        const inWorker = await new Promise((resolve) => (w.onmessage = ({ data }) => resolve(data)));
        const s = new EventSource('${other}/events', { withCredentials: true }); const seen = [];
        s.onerror = () => seen.push('error');
        await new Promise((resolve) => (s.onmessage = ({ data, origin }) => { seen.push(data); if (seen.length > 8) { s.close(); resolve(); } }));
        return [inWorker, seen, s.url.endsWith('/events'), s.withCredentials];`),
    ],
    [
      'an aborted fetch: the server sees it',
      async ({ inPage, app }) => {
        const name = await inPage(
          `const a = new AbortController(); setTimeout(() => a.abort(), 300); return fetch('/never', { signal: a.signal }).catch((error) => error.name)`,
        );
        await expect.poll(() => app.log).toContain('aborted /never');
        return name;
      },
    ],
    [
      '30 visits that are left before the response',
      async ({ page, at, app }) => {
        for (let visit = 0; visit < 30; visit++)
          await page.goto(`${at}/never?${visit}`, { timeout: 40 }).catch(() => {});
        await page.goto(`${at}/`);
        await expect
          .poll(() => app.log.filter((line) => line.startsWith('aborted')).length)
          .toBeGreaterThan(20);
        return page.title();
      },
    ],
  ],
  Caches: [
    [
      'etag: a second load',
      async ({ inPage, app }) => [
        await inPage(ofFetch(`'/etag'`)),
        await inPage(ofFetch(`'/etag'`)),
        app.log,
      ],
    ],
    [
      'max-age: a second load',
      async ({ inPage, app }) => [
        await inPage(ofFetch(`'/cached'`)),
        await inPage(ofFetch(`'/cached'`)),
        app.log,
      ],
      'the browser answers from its HTTP cache below the interception: here, the server answers again',
    ],
    [
      'Cache-Control of requests: a reload, fetch with no-cache and no-store',
      async ({ page, at, inPage }) => {
        const sent = `return (await (await fetch('/headers', { cache: 'no-store' })).json()).headers['cache-control']`;
        await page.goto(`${at}/headers`);
        await page.reload();
        const { headers } = JSON.parse(await page.innerText('body')) as { headers: Record<string, string> };
        return [headers['cache-control'], await inPage(sent), await inPage(sent.replace('store', 'cache'))];
      },
      'the browser adds it below the interception, with its HTTP cache: the server does not receive it',
    ],
    [
      'Cache-Control of an EventSource',
      ({ inPage }) =>
        inPage(`return new Promise((resolve) => { const s = new EventSource('/event-of-headers');
          s.onmessage = ({ data }) => { s.close(); resolve(JSON.parse(data)['cache-control']); } })`),
    ],
    [
      'Cache Storage',
      async ({ inPage }) =>
        inPage(
          `const c = await caches.open('a'); await c.add('/text'); return (await (await c.match('/text')).text())`,
        ),
    ],
  ],
  Workers: [
    [
      'a worker, and its fetch',
      async ({ inPage }) =>
        inPage(
          `const answer = (w) => new Promise((resolve) => (w.onmessage = ({ data }) => resolve(data)));
          const w = new Worker('/worker.js'); w.postMessage('/text'); const read = await answer(w);
          const code = "postMessage([Object.hasOwn(self, 'fetch'), Object.hasOwn(WorkerGlobalScope.prototype, 'fetch')])";
          return [read, await answer(new Worker(URL.createObjectURL(new Blob([code]))))]`,
        ),
    ],
    [
      'a shared worker',
      async ({ inPage }) =>
        inPage(
          `const w = new SharedWorker('/shared.js'); return new Promise((resolve) => (w.port.onmessage = ({ data }) => resolve(data)))`,
        ),
    ],
    [
      'a service worker',
      async ({ inPage }) =>
        inPage(`await navigator.serviceWorker.register('/service.js'); await navigator.serviceWorker.ready;
      if (!navigator.serviceWorker.controller) await new Promise((resolve) => (navigator.serviceWorker.oncontrollerchange = resolve));
      return [await (await fetch('/mine')).text(), await (await fetch('/text')).text()]`),
    ],
  ],
  WebSockets: [
    [
      'text, and a close with a code',
      async ({ inPage, app }) => [
        await inPage(socket(`'/socket'`, `socket.send('text')`)),
        await closed(app),
      ],
    ],
    [
      'the server closes, or cuts',
      async ({ inPage }) => [
        await inPage(socket(`'/socket'`, `socket.send('close me')`)),
        await inPage(socket(`'/socket'`, `socket.send('cut me')`)),
      ],
    ],
    [
      'bytes, and a message of 1 MB',
      async ({ inPage }) => [
        await inPage(socket(`'/socket'`, `socket.send(new Uint8Array([1, 2, 255]))`)),
        await inPage(socket(`'/socket'`, `socket.send('x'.repeat(1024 * 1024))`)),
      ],
    ],
    [
      'subprotocols',
      async ({ inPage }) => [
        await inPage(socket(`'/socket', ['first', 'second']`, `socket.send('a')`)),
        await inPage(socket(`'/socket', 'second'`, `socket.send('a')`)),
        await inPage(socket(`'/socket', 'first'`, `socket.send('a')`)),
      ],
    ],
    ['a greeting of the server', async ({ inPage }) => inPage(socket(`'/greets'`, ``))],
    [
      'a handshake that is refused, or finds nobody',
      async ({ inPage, app }) => [
        await inPage(socket(`'/refused'`, ``)),
        await inPage(socket(`'${app.origins.closing.replace('http', 'ws')}/'`, ``)),
      ],
    ],
    [
      'origin, cookies and headers of the context',
      async ({ open, at, app }) => {
        const page = await open({
          userAgent: 'Agent/1',
          locale: 'de-CH',
          extraHTTPHeaders: { 'x-extra': 'yes' },
        });
        await page.goto(`${at}/set-cookies`);
        await page.evaluate(`(async () => { ${socket(`'/socket'`, `socket.send('a')`)} })()`);
        await page.evaluate(`new Promise((resolve) => {
          const code = "new WebSocket('" + location.origin.replace('http', 'ws') + "/socket').onopen = () => postMessage(0)";
          new Worker(URL.createObjectURL(new Blob([code]))).onmessage = () => resolve();
        })`);
        return app.log.filter((line) => line.startsWith('upgrade'));
      },
    ],
    [
      'a page of another site: origin and cookies',
      async ({ page, at, other, inPage, app }) => {
        await page.goto(`${at}/set-cookies`);
        await page.goto(`${other}/`);
        await inPage(socket(`'${at.replace('http', 'ws')}/socket'`, `socket.send('a')`));
        // A host of the same site.
        const near = at.replace('localhost', 'api.shop.localhost');
        await page.goto(`${near}/set-cookies`);
        await page.goto(`${other}/`);
        await inPage(socket(`'${near.replace('http', 'ws')}/socket'`, `socket.send('a')`));
        return app.log.filter((line) => line.startsWith('upgrade'));
      },
    ],
    [
      'a page that is left',
      async ({ page, at, inPage, app }) => {
        await inPage(
          `globalThis.kept = new WebSocket('/socket'); return new Promise((resolve) => (kept.onopen = () => resolve()))`,
        );
        await page.goto(`${at}/text`);
        return closed(app);
      },
    ],
  ],
  'The context': [
    [
      'user agent, locale, extra headers',
      async ({ open, at }) => {
        const page = await open({
          userAgent: 'Agent/1',
          locale: 'de-CH',
          extraHTTPHeaders: { 'x-extra': 'yes' },
        });
        await page.goto(`${at}/headers`);
        const { headers } = JSON.parse(await page.innerText('body')) as { headers: Record<string, string> };
        return ['user-agent', 'accept-language', 'x-extra', 'accept', 'host', 'referer'].map(
          (name) => headers[name],
        );
      },
    ],
    [
      'headers that the browser adds below the interception (Sec-Fetch-…)',
      async ({ inPage }) =>
        inPage(
          `return Object.keys((await (await fetch('/headers')).json()).headers).filter((name) => /^sec-fetch/.test(name)).sort()`,
        ),
      'the browser adds them when it opens a connection, and CDP does not report the initiator',
    ],
    [
      'offline',
      async ({ context, inPage }) => {
        await context.setOffline(true);
        const off = await inPage(ofFetch(`'/text'`));
        await context.setOffline(false);
        return [off, await inPage(ofFetch(`'/text'`))];
      },
    ],
    [
      'offline: a navigation',
      async ({ context, page, at }) => {
        await context.setOffline(true);
        return openFails(page, `${at}/`);
      },
    ],
    [
      'throttling: latency and throughput',
      async ({ context, page, inPage }) => {
        const cdp = await context.newCDPSession(page);
        await cdp.send('Network.emulateNetworkConditions', {
          offline: false,
          latency: 400,
          downloadThroughput: 500_000,
          uploadThroughput: 500_000,
        });
        const time = (await inPage(
          `const t = performance.now(); await (await fetch('/text')).text(); const s = performance.now(); await (await fetch('/large?mb=1')).text(); return [s - t, performance.now() - s]`,
        )) as number[];
        return [time[0]! >= 390, time[1]! >= 1900];
      },
    ],
    [
      'httpCredentials (basic)',
      async ({ open, at }) => {
        const page = await open({ httpCredentials: { username: 'user', password: 'secret' } });
        const first = await openFails(page, `${at}/basic`);
        return [first, await page.innerText('body')];
      },
      'the browser asks the library only for its own connections: set the header Authorization (extraHTTPHeaders)',
    ],
    [
      'a name and a password in the URL',
      async ({ context, at, inPage }) => [
        await openFails(context.pages()[0]!, `${at.replace('//', '//user:secret@')}/basic`),
        await inPage(`return (await fetch('/basic')).status`),
      ],
    ],
    [
      'no credentials',
      async ({ page, at }) => [await openFails(page, `${at}/basic`), await page.innerText('body')],
    ],
  ],
  Servers: [
    [
      'only on ::1',
      async ({ page, app }) => [
        await openFails(page, `${app.origins.v6}/text`),
        await page.innerText('body'),
      ],
    ],
    [
      'a certificate that is self-signed',
      async ({ page, app }) => openFails(page, `${app.origins.https}/`),
      'CDP has no error of certificates: the page sees ERR_FAILED, and its console a message',
    ],
    [
      'the same, with ignoreHTTPSErrors',
      async ({ open, app }) => {
        const page = await open({ ignoreHTTPSErrors: true });
        return [await openFails(page, `${app.origins.https}/`), await page.title()];
      },
    ],
    [
      'only HTTP/2',
      async ({ open, app }) => {
        const page = await open({ ignoreHTTPSErrors: true });
        const status = await openFails(page, `${app.origins.http2}/`);
        return [
          status,
          await page.title(),
          await page.evaluate(`(async () => { ${ofFetch(`'/echo', { method: 'POST', body: 'h2' }`)} })()`),
        ];
      },
    ],
    [
      'gzip, deflate, br and zstd',
      async ({ inPage }) => {
        const found = [];
        for (const name of ['gzip', 'deflate', 'br', 'zstd'])
          found.push(
            await inPage(`const r = await fetch('/${name}'); return (await r.text()).slice(0, 190)`),
          );
        return found;
      },
    ],
    [
      'Content-Encoding and Content-Length of a compressed response',
      async ({ inPage }) =>
        inPage(
          `const r = await fetch('/gzip'); return [r.headers.get('content-encoding'), r.headers.get('content-length')]`,
        ),
    ],
    ['early hints', async ({ page, at }) => [await openFails(page, `${at}/early`), await page.title()]],
    [
      'nobody listens',
      async ({ page, inPage }) => [
        await inPage(`return fetch('http://localhost:2/').catch(String)`),
        await openFails(page, 'http://localhost:2/'),
      ],
    ],
    ['a connection that is reset', async ({ page, at }) => openFails(page, `${at}/reset`)],
    [
      'a connection that is closed without a response, a response that is no HTTP, a document that is cut short',
      async ({ page, at }) => [
        await openFails(page, `${at}/empty`),
        await openFails(page, `${at}/garbage`),
        await openFails(page, `${at}/truncated-page`, 'commit'),
      ],
      'CDP has no errors of these names: the navigation fails with ERR_CONNECTION_CLOSED, ERR_FAILED, or ERR_CONNECTION_RESET',
    ],
    [
      'fetch: a response that is cut short, or whose encoding is broken',
      async ({ inPage }) => [
        await inPage(`const r = await fetch('/truncated'); return [r.status, await r.text().catch(String)]`),
        await inPage(
          `const r = await fetch('/broken-gzip'); return [r.status, await r.text().catch(String)]`,
        ),
      ],
    ],
  ],
  'The automation library': [
    [
      'status, headers and body of a response',
      async ({ page, at }) => {
        const [response] = await Promise.all([
          page.waitForResponse('**/set-cookies'),
          page.goto(`${at}/set-cookies`),
        ]);
        const headers = (await response.headersArray())
          .filter(
            ({ name, value }) => !/^(date|connection|keep-alive)$/i.test(name) && !value.startsWith('utf'),
          )
          .toSorted((one, other) => (one.name < other.name ? -1 : 1));
        return [
          headers,
          (await response.body()).length,
          response.fromServiceWorker(),
          await response.finished(),
        ];
      },
    ],
    [
      'the headers of a request',
      async ({ page, at }) => {
        const response = await page.goto(`${at}/`);
        return Object.keys(await response!.request().allHeaders())
          .filter((name) => !name.startsWith(':'))
          .sort();
      },
      'the browser reports what it adds to a request only for its own connections',
    ],
    [
      'the body of a request, its sizes and timing',
      async ({ page, inPage }) => {
        const waiting = page.waitForRequest('**/echo');
        await inPage(ofFetch(`'/echo', { method: 'POST', body: 'posted' }`));
        const request = await waiting;
        const { responseEnd } = request.timing();
        return [request.postData(), (await request.sizes()).requestBodySize, responseEnd > 0];
      },
    ],
    [
      'page.route on top: fulfil, abort, continue, fetch',
      async ({ context, inPage }) => {
        const [page] = context.pages() as [Page];
        await page.route('**/text', (route) => route.fulfill({ body: 'mine' }));
        await page.route('**/404', (route) => route.abort());
        await page.route('**/echo', (route) => route.continue({ method: 'PUT', postData: 'changed' }));
        await page.route('**/gzip', async (route) =>
          route.fulfill({ response: await route.fetch(), body: 'fetched' }),
        );
        return [
          await inPage(ofFetch(`'/text'`)),
          await inPage(ofFetch(`'/404'`)),
          await inPage(ofFetch(`'/echo', { method: 'POST', body: 'x' }`)),
          await inPage(`return (await fetch('/gzip')).text()`),
        ];
      },
    ],
    [
      'HAR of a context',
      async ({ browser, at }) => {
        const path = join(mkdtempSync(join(tmpdir(), 'har-')), 'a.har');
        const context = await browser.newContext({ recordHar: { path, urlFilter: '**/*' } });
        const page = await context.newPage();
        await page.goto(`${at}/redirect`);
        await page.evaluate(ofPost);
        await context.close();
        const { log } = JSON.parse(readFileSync(path, 'utf8')) as Har;
        return log.entries
          .filter(({ request }) => !request.url.includes('favicon'))
          .map(({ request, response, time }) => [
            request.method,
            request.postData?.text,
            response.status,
            response.redirectURL,
            response.content.mimeType,
            response.content.text,
            time > 0,
          ]);
      },
    ],
    ['page.request of the library', async ({ page, at }) => (await page.request.get(`${at}/text`)).text()],
    [
      'failed requests',
      async ({ page, inPage }) => {
        const failed = page.waitForEvent('requestfailed');
        await inPage(`return fetch('/reset').catch(String)`);
        return (await failed).failure()?.errorText;
      },
    ],
    [
      'the address and the certificate of the server',
      async ({ page, at }) => {
        const response = await page.goto(`${at}/`);
        return (await response!.serverAddr())?.ipAddress;
      },
      'the browser has no connection to the server',
    ],
  ],
};

async function closed(app: LocalhostApp): Promise<string[]> {
  const lines = () => app.log.filter((line) => line.startsWith('closed'));
  await expect.poll(() => lines().length).toBeGreaterThan(0);
  return lines();
}

interface Har {
  log: {
    entries: {
      time: number;
      request: { url: string; method: string; postData?: { text: string } };
      response: { status: number; redirectURL: string; content: { mimeType: string; text?: string } };
    }[];
  };
}
const ofPost = `fetch('/echo', { method: 'POST', body: 'posted' }).then((r) => r.text())`;

let app: LocalhostApp;
let browsers: PooledBrowser<playwright.PlaywrightHandles>[];
beforeAll(async () => {
  app = await LocalhostApp.start();
  browsers = await Promise.all([
    playwright.leaseBrowser(here.pool),
    playwright.leaseBrowser(elsewhere.pool, { exposeNetwork: 'localhost,*.localhost' }),
  ]);
});
afterAll(async () => {
  await Promise.all(browsers.map((one) => one.release()));
  await app[Symbol.asyncDispose]();
});

/** The page of a browser that the last row left as it was: a new page and its process need longer than most rows. */
const kept = new Map<Browser, Page>();

/** Opens a page, or takes the one that is left, without cookies. One that has a service worker, or still opens a page, is closed. */
async function pageOf(browser: Browser): Promise<Page> {
  const before = kept.get(browser);
  kept.delete(browser);
  const page = before ?? (await (await browser.newContext()).newPage());
  await page.context().clearCookies();
  const open = page.goto(`${app.origins.http}/text?first`);
  if (!before) await open;
  const workers = 'navigator.serviceWorker.getRegistrations().then((all) => all.length)';
  const isClean = await open.then(async () => (await page.evaluate(workers)) === 0).catch(() => false);
  if (isClean) return page;
  await page.context().close();
  return pageOf(browser);
}

/** Returns what a browser shows, without what changes from run to run. */
async function show({ use }: PooledBrowser<playwright.PlaywrightHandles>, run: Load): Promise<string> {
  return use(async ({ browser }) => {
    const at = app.origins.http;
    const page = await pageOf(browser);
    const contexts: BrowserContext[] = [];
    const open = async (options: BrowserContextOptions) => {
      const context = await browser.newContext(options);
      contexts.push(context);
      return context.newPage();
    };
    const trial: Trial = {
      browser,
      // A row that takes the context may change it.
      get context() {
        contexts.push(page.context());
        return page.context();
      },
      page,
      at,
      other: at.replace('localhost', 'shop.localhost'),
      inPage: (code) => page.evaluate(`(async () => { ${code} })().catch(String)`),
      open,
      app,
    };
    app.log = [];
    app.headers = [];
    try {
      return JSON.stringify(await run(trial), undefined, 1);
    } catch (error) {
      contexts.push(page.context());
      return `fails: ${(error as Error).message.split('\n')[0]}`;
    } finally {
      if (!page.isClosed() && !contexts.includes(page.context())) kept.set(browser, page);
      await Promise.all(contexts.map((one) => one.close()));
    }
  });
}

describe.each(Object.entries(ROWS))('%s', (_part, rows) => {
  it.each(rows)('%s', async (_load, run, reason) => {
    const local = await show(browsers[0]!, run);
    const leased = await show(browsers[1]!, run);
    expect(local).not.toMatch(/^fails/);
    if (reason === undefined) expect(leased).toBe(local);
    // A row that became equal must not stay in the guide.
    else expect(leased).not.toBe(local);
  });
});

it('is the table of the guide', async () => {
  const path = 'examples/localhost/README.md';
  const guide = readFileSync(path, 'utf8');
  const lines = Object.entries(ROWS).flatMap(([part, rows]) => [
    `| **${part}** | |`,
    ...rows.map(([load, , reason]) => `| ${load} | ${reason ?? 'equal'} |`),
  ]);
  const table = ['| load | compared with a local browser |', '| - | - |', ...lines].join('\n');
  const [before, after] = [
    /^[^]*<!-- table -->\n/.exec(guide)![0],
    /\n<!-- end of the table -->[^]*$/.exec(guide)![0],
  ];
  const made = await format(`${before}\n${table}\n${after}`, {
    ...(await resolveConfig(path)),
    filepath: path,
  });
  if (process.env['UPDATE_GUIDE']) writeFileSync(path, made);
  else expect(guide).toBe(made);
});
