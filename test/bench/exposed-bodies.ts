/**
 * `npm run bench -- exposed-bodies`: what an exposed host receives, and a page receives from it, compared with the same browser without a
 * lease: the headers, the length and the hash of bodies of 0 B to 400 MB, by each way to send one, over the local pool and over `cdp`.
 * CHROME_PATH names the browser. Without the headers of which the guide says that they differ. Prints each difference, and fails if there is one. MOST (default 400): the largest body in MB.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chromium, type Page } from 'playwright-core';
import { BrowserPool } from 'pooled-browser';
import { findBrowser, startLocalPool } from 'pooled-browser/local';
import { withPooledBrowser } from 'pooled-browser/playwright';
import { cdp } from 'pooled-browser/services';
import { startChromium } from '../support/chromium.js';
import { printTable, setting } from './bench.js';

const MEGABYTE = 1024 * 1024;
const SIZES = [
  0,
  1,
  65_537,
  MEGABYTE,
  32 * MEGABYTE,
  65 * MEGABYTE,
  100 * MEGABYTE,
  257 * MEGABYTE,
  400 * MEGABYTE,
];
const MOST = setting('MOST', 400) * MEGABYTE;
/** A form with a larger file from the memory of its page: see the guide. */
const MOST_OF_FORM = 32 * MEGABYTE;
/** The leased browsers do not reach this machine by themselves. */
const ELSEWHERE = '--host-resolver-rules=MAP localhost 127.0.0.1:9';

/** The bytes of a body repeat this part. */
const PART = Buffer.from(Array.from({ length: 65_536 }, (_, at) => at % 251));

/** What the app has received, by the name of the load. */
const received = new Map<string, object>();
const app = createServer((request, response) => void serve(request, response));
await once(app.listen(0, '127.0.0.1'), 'listening');
const { port } = app.address() as AddressInfo;
const site = `http://localhost:${port}`;

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams: query } = new URL(request.url!, site);
  if (pathname === '/bytes') return sendBytes(Number(query.get('size')), response);
  const hash = createHash('sha256');
  let size = 0;
  // The separator of a form is random, and of the same length each time.
  const boundary = /boundary=(\S+)/.exec(request.headers['content-type'] ?? '')?.[1];
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (boundary === undefined) hash.update(chunk);
  }
  const headers = Object.entries(request.headers)
    .filter(([name]) => !/^sec-fetch-|^cache-control$/.test(name))
    .map(
      ([name, value]) =>
        `${name}: ${String(value)
          .replace(/, zstd$/, '')
          .replaceAll(boundary ?? '\0', 'BOUNDARY')}`,
    )
    .toSorted();
  const load = query.get('load');
  if (load !== null) received.set(load, { headers, size, hash: hash.digest('hex') });
  response
    .writeHead(200, { 'content-type': 'text/html', 'cache-control': 'no-store' })
    .end(`<title>${size}</title>`);
}

async function sendBytes(size: number, response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': size });
  for (let sent = 0; sent < size && !response.destroyed; sent += PART.length)
    if (!response.write(PART.subarray(0, size - sent))) await once(response, 'drain').catch(() => {});
  response.end();
}

const BODY = `const body = (size) => {
  const part = Uint8Array.from({ length: 65536 }, (_, at) => at % 251);
  const parts = Array.from({ length: Math.floor(size / part.length) }, () => part);
  return new Blob([...parts, part.subarray(0, size % part.length)]);
};`;

/** Each way to send or to receive a body; the result is what the page sees. */
const LOADS: Readonly<Record<string, (url: string, size: number) => string>> = {
  fetch: (url, size) => `(await fetch('${url}', { method: 'POST', body: body(${size}) })).status`,
  XMLHttpRequest: (url, size) => `await new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.onloadend = () => resolve(request.status);
    request.open('PUT', '${url}');
    request.send(body(${size}));
  })`,
  'a form of fetch': (url, size) => `await (async () => {
    const form = new FormData();
    form.append('text', 'one');
    form.append('file', body(${size}), 'a name.bin');
    return (await fetch('${url}', { method: 'POST', body: form })).status;
  })()`,
  'a response': (_url, size) => `await (async () => {
    const reader = (await fetch('/bytes?size=${size}')).body.getReader();
    let [length, sum] = [0, 0];
    for (let part; !(part = await reader.read()).done; length += part.value.length)
      for (let at = 0; at < part.value.length; at += 997) sum = (sum * 31 + part.value[at] + at + length) % 1000003;
    return length;
  })()`,
};

/** A form with a file of the page's own memory, sent by a navigation. */
async function submit(page: Page, url: string, size: number): Promise<unknown> {
  const navigated = page.waitForURL(url, { timeout: 120_000 });
  navigated.catch(() => {});
  await page.evaluate(`(() => { ${BODY}
    const form = Object.assign(document.createElement('form'), { method: 'POST', action: '${url}', enctype: 'multipart/form-data' });
    const input = Object.assign(document.createElement('input'), { type: 'file', name: 'file' });
    const files = new DataTransfer();
    files.items.add(new File([body(${size})], 'a name.bin'));
    input.files = files.files;
    form.append(input);
    document.body.append(form);
    form.submit();
  })()`);
  await navigated;
  return page.title();
}

type Seen = Map<string, string>;

async function visit(first: Page): Promise<Seen> {
  const seen: Seen = new Map();
  const note = async (load: string, run: () => Promise<unknown>) => {
    received.delete(load);
    const outcome = await run().catch((error: Error) => error.message.split('\n')[0]);
    seen.set(load, JSON.stringify({ outcome, received: received.get(load) }));
  };
  for (const size of SIZES.filter((one) => one <= MOST)) {
    const named = (way: string) => `${way}, ${size} B`;
    const urlOf = (load: string) => `${site}/take?load=${encodeURIComponent(load)}`;
    const page = await first.context().newPage();
    await page.goto(`${site}/`);
    for (const [way, code] of Object.entries(LOADS)) {
      const load = named(way);
      await note(load, () => page.evaluate(`(async () => { ${BODY} return ${code(urlOf(load), size)}; })()`));
    }
    const load = named('a form');
    if (size <= MOST_OF_FORM) await note(load, () => submit(page, urlOf(load), size));
    await page.close();
  }
  return seen;
}

const executablePath = await findBrowser();
const options = { exposeNetwork: `localhost:${port}`, context: 'new', replays: 'off' } as const;

const WAYS: Readonly<Record<string, () => Promise<Seen>>> = {
  plain: async () => {
    const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
    const seen = await visit(await (await browser.newContext()).newPage());
    await browser.close();
    return seen;
  },
  'local pool': async () => {
    await using local = await startLocalPool({ args: [ELSEWHERE] });
    await using pool = new BrowserPool('default', { baseUrl: local.baseUrl, token: local.token });
    return (await withPooledBrowser(pool, ({ page }) => visit(page), options)).value;
  },
  cdp: async () => {
    await using browser = await startChromium(ELSEWHERE);
    await using pool = new BrowserPool<object>('cdp', { service: cdp(browser.url) });
    return (await withPooledBrowser(pool, ({ page }) => visit(page), options)).value;
  },
};

const results: Record<string, Seen> = {};
for (const [way, run] of Object.entries(WAYS)) results[way] = await run();
const { plain, ...leased } = results;
const rows = Object.entries(leased).map(([way, seen]) => {
  const differing = [...plain!].filter(([load, value]) => seen.get(load) !== value);
  for (const [load, value] of differing)
    console.log(
      `${way}: ${load}\n  plain:  ${value.slice(0, 1000)}\n  leased: ${seen.get(load)?.slice(0, 1000)}`,
    );
  return [way, seen.size, differing.length];
});
printTable([executablePath.split('/').at(-1)!, 'bodies', 'differences'], rows);
app.close();
process.exit(rows.some(([, , differences]) => differences !== 0) ? 1 : 0);
