/**
 * Runs folders, or files, of the web-platform-tests, served on localhost, in a browser of this machine and in a leased one that does
 * not reach localhost and has the option `exposeNetwork`, and prints the differences, test by test. Not part of the tests: it needs a
 * clone, and takes about a second for each file.
 *
 *   git clone --depth 1 https://github.com/web-platform-tests/wpt ../wpt
 *   npm run build && npx tsx test/peers/web-platform-tests.ts ../wpt websockets cookies fetch/api
 *
 * Its server needs Python 3. Tests that need TLS, HTTP/2 or a driver of the browser are left out. Pages with a difference run twice.
 * PAGES (default 4): pages at once.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Browser } from 'playwright-core';
import { BrowserPool } from 'pooled-browser';
import { startLocalPool } from 'pooled-browser/local';
import { withPooledBrowser } from 'pooled-browser/playwright';

const [clone, ...folders] = process.argv.slice(2);
if (clone === undefined || folders.length === 0)
  throw new Error('Pass the folder of the web-platform-tests, and the names of folders there.');
const root = resolve(clone);
const PAGES = Number(process.env['PAGES'] ?? 4);
const LONGEST = 70_000;
/** The name by which the browser of the lease does not reach this machine. */
const ELSEWHERE = '--host-resolver-rules=MAP localhost 127.0.0.1:9, MAP *.localhost 127.0.0.1:9';

/** The result of each test of a page, by its name. */
type Results = Record<string, string>;

function filesIn(folder: string): string[] {
  if (statSync(folder).isFile()) return [folder];
  const all = readdirSync(folder, { recursive: true, withFileTypes: true });
  return all.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** Reads the paths of the pages of a folder, or of a file. */
function pagesIn(folder: string): string[] {
  return filesIn(join(root, folder))
    .flatMap((path) => {
      const url = relative(root, path).replaceAll('\\', '/');
      if (/\/(resources|support|tools)\//.test(url) || /\.(https|h2|tentative)\./.test(url)) return [];
      if (!/\.(html?|any\.js|window\.js|worker\.js)$/.test(url)) return [];
      const text = readFileSync(path, 'utf8');
      if (/testdriver|crashtest/.test(text)) return [];
      const variants = [...text.matchAll(/(?:META: variant=|name="?variant"? content=")([^"\n]*)/g)].map(
        ([, query]) => query!.trim(),
      );
      const pages = pagesOf(url, text);
      return pages.flatMap((page) => (variants.length > 0 ? variants : ['']).map((query) => page + query));
    })
    .filter((page) => !/[?&](wss|wpt_flags=(https|h2))/.test(page))
    .sort();
}

function pagesOf(url: string, text: string): string[] {
  if (url.endsWith('.window.js')) return [url.replace(/\.js$/, '.html')];
  if (url.endsWith('.any.js')) {
    const globals = /META: global=(.*)/.exec(text)?.[1] ?? 'window,dedicatedworker';
    const isIn = (name: RegExp) => name.test(globals);
    return [
      ...(isIn(/window/) ? [url.replace(/\.js$/, '.html')] : []),
      ...(isIn(/(dedicated)?worker/) ? [url.replace(/\.js$/, '.worker.html')] : []),
    ];
  }
  if (url.endsWith('.worker.js')) return [url.replace(/\.js$/, '.html')];
  return text.includes('testharness.js') ? [url] : [];
}

/** Reads the results in a page. */
const REPORT = `add_completion_callback((tests, harness) => {
  window.reported = Object.fromEntries([
    ['(harness)', ['OK', 'ERROR', 'TIMEOUT', 'PRECONDITION_FAILED'][harness.status]],
    ...tests.map(({ name, status }) => [name, ['PASS', 'FAIL', 'TIMEOUT', 'NOTRUN', 'PRECONDITION_FAILED'][status]]),
  ]);
});
setup({ output: false });`;

async function serve(): Promise<{ site: string; stop: () => void }> {
  const config = join(mkdtempSync(join(tmpdir(), 'wpt-')), 'config.json');
  // The names of some servers differ between versions. Scripts of tests contain the ports of all.
  const source = readFileSync(join(root, 'tools/serve/serve.py'), 'utf8');
  const near = source.includes('"http-private"') ? 'private' : 'local';
  const ports = {
    http: [8600, 8601],
    ws: [8602],
    https: [8603, 8604],
    [`http-${near}`]: [8605],
    'http-public': [8606],
    [`https-${near}`]: [8607],
    'https-public': [8608],
    wss: [8609],
  };
  const settings = {
    browser_host: 'localhost',
    alternate_hosts: { alt: 'alt.localhost' },
    check_subdomains: false,
    ports,
  };
  writeFileSync(config, JSON.stringify(settings));
  writeFileSync(join(root, 'resources/testharnessreport.js'), REPORT);
  const server = spawn('python3', ['wpt', 'serve', '--config', config, '--no-h2'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
    detached: true,
  });
  const site = 'http://localhost:8600';
  for (let tries = 0; !(await fetch(site).catch(() => undefined)); tries++) {
    if (tries > 120 || server.exitCode !== null) throw new Error('The server did not start.');
    await delay(500);
  }
  return { site, stop: () => process.kill(-server.pid!, 'SIGTERM') };
}

/** Opens a page in a context of its own. */
async function resultsOf(browser: Browser, url: string): Promise<Results> {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto(url, { timeout: LONGEST });
    await page.waitForFunction('window.reported', undefined, { timeout: LONGEST });
    return await page.evaluate<Results>('reported');
  } catch (error) {
    return { '(page)': (error as Error).message.split('\n')[0]! };
  } finally {
    await context.close();
  }
}

async function runAll(
  pages: readonly string[],
  site: string,
  exposeNetwork?: string,
): Promise<Map<string, Results>> {
  await using local = await startLocalPool({
    pools: [{ name: 'test', size: 1, timeoutSeconds: 3600 }],
    ...(exposeNetwork !== undefined && { args: [ELSEWHERE] }),
  });
  await using pool = new BrowserPool('test', { baseUrl: local.baseUrl, token: local.token });
  const all = new Map<string, Results>();
  const left = [...pages];
  const runNext = async (browser: Browser) => {
    for (let page = left.shift(); page !== undefined; page = left.shift())
      all.set(page, await resultsOf(browser, `${site}/${page}`));
  };
  const run = async ({ browser }: { browser: Browser }) =>
    Promise.all(Array.from({ length: PAGES }, () => runNext(browser)));
  await withPooledBrowser(pool, run, { exposeNetwork, context: 'new', release: 'destroy' });
  return all;
}

/** Runs pages in both browsers. Returns the number of tests, and those that differ, as lines by page. */
async function compare(pages: readonly string[], site: string) {
  const [plain, leased] = [await runAll(pages, site), await runAll(pages, site, '<loopback>')];
  const differences = new Map<string, string[]>();
  let count = 0;
  for (const page of pages) {
    const [one, other] = [plain.get(page)!, leased.get(page)!];
    const names = Object.keys({ ...one, ...other });
    count += names.length;
    const lines = names
      .filter((name) => one[name] !== other[name])
      .map((name) => `${page} | ${name} | ${one[name] ?? 'missing'} | ${other[name] ?? 'missing'}`);
    if (lines.length > 0) differences.set(page, lines);
  }
  return { count, differences };
}

const { site, stop } = await serve();
try {
  for (const folder of folders) {
    const pages = pagesIn(folder);
    const { count, differences } = await compare(pages, site);
    // On a busy machine, a test can take too long by chance.
    const again = await compare([...differences.keys()], site);
    const lines = [...again.differences.values()].flat();
    console.log(`${folder}: ${pages.length} pages, ${count} tests, ${lines.length} differences`);
    for (const line of lines) console.log(`  ${line}`);
  }
} finally {
  stop();
}
