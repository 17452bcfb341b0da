import { once, type EventEmitter } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  BrowserPool,
  runOf,
  withPooledBrowser,
  type Connector,
  type FailedRun,
  type RunEvent,
} from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { DRIVERS } from '../support/drivers.js';
import { FakeService } from '../support/fake-service.js';
import { useLocalPool } from '../support/local.js';
import { plainConnector } from '../support/plain-connector.js';
import { LONG, watchTimeouts } from './support.js';

const used = useLocalPool();

/** A page that logs, throws, and has failing requests. It is longer than any window. */
const PAGE = `<!doctype html><title>Shop</title><link rel="icon" href="data:,">
<body style="margin:0"><div style="height:3000px"></div><script>
console.error('\\x1b[31mno stock\\x1b[0m for ' + location.href + ' http://user:my-password@shop.test/');
setTimeout(() => { throw new RangeError('the page failed'); });
for (const path of ['/missing?id=my-id', '/reset?my-code', '/cut?x=my-cut']) fetch(path).catch(() => {});
</script>`;

const server = createServer(({ url }, response) => {
  const isPage = url!.startsWith('/shop');
  if (url!.startsWith('/cut')) response.destroy();
  else response.writeHead(isPage ? 200 : 404, { 'content-type': 'text/html' }).end(isPage ? PAGE : 'none');
});
let shop: string;
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  shop = `http://127.0.0.1:${(server.address() as AddressInfo).port}/shop?session=my-session#access_token=my-token`;
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

let folder: string;
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'artifacts-')), 'not', 'there', 'yet');
});

interface AnyPage {
  goto(url: string): Promise<unknown>;
}

/** Opens the shop, and waits until everything in it has failed. */
async function openShop(page: AnyPage): Promise<void> {
  const events = page as unknown as EventEmitter;
  const missing = (path: string) =>
    new Promise<void>((resolve) => {
      const onResponse = (response: { url(): string }) => response.url().includes(path) && resolve();
      events.on('response', onResponse);
    });
  const failed = ['pageerror', 'requestfailed'].map(
    (event) => new Promise((resolve) => events.once(event, resolve)),
  );
  // With the same URL, the browser would only move to the fragment of a page that an earlier lease left open.
  await page.goto('about:blank');
  await Promise.all([page.goto(shop), missing('/missing'), missing('/reset'), ...failed]);
}

async function failedRun(promise: Promise<unknown>, expected: unknown): Promise<FailedRun> {
  const error: unknown = await promise.then(
    () => expect.fail('The run succeeded'),
    (reason: unknown) => reason,
  );
  if (expected) expect(error).toBe(expected);
  // On a busy machine, an aborted call rejects before its end.
  await expect.poll(() => runOf(error)).toBeDefined();
  return runOf(error)!;
}

interface Entry {
  time: string;
  type: string;
  page?: string;
  text?: string;
  [fact: string]: unknown;
}

function readLog(path: string): Entry[] {
  return readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry);
}

/** Width and height of a PNG, in pixels. */
function sizeOf(path: string): [number, number] {
  const bytes = readFileSync(path);
  expect(bytes.subarray(1, 4).toString()).toBe('PNG');
  return [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
}

describe.each(DRIVERS)('artifacts with $name', ({ run, openPage }) => {
  it('are a screenshot of the whole page, and its messages, errors and failed requests, after a failure', async () => {
    const mine = new Error('mine');
    const events: RunEvent[] = [];
    const failing = run(
      used.pool,
      async ({ page }) => {
        await openShop(page);
        throw mine;
      },
      { name: 'check..out', artifacts: { folder }, onEvent: (event) => events.push(event) },
    );
    const { artifacts, cleanupErrors, released } = await failedRun(failing, mine);
    expect({ cleanupErrors, released }).toEqual({ cleanupErrors: [], released: 'reused' });
    expect(artifacts.map((path) => basename(path))).toEqual(['console.jsonl', 'screenshot.png']);
    const [log, screenshot] = artifacts as [string, string];
    expect(dirname(dirname(log))).toBe(folder);
    expect(basename(dirname(log))).toMatch(/^check-out-\w{6}$/);
    for (const path of artifacts) expect(statSync(path).mode & 0o777).toBe(0o600);
    const [width, height] = sizeOf(screenshot);
    expect({ width, height }).toEqual({ width: 1280, height: 3000 });
    const entries = readLog(log);
    const types = new Set(entries.map(({ type }) => type));
    expect(types).toEqual(new Set(['console', 'page-error', 'request-failed']));
    expect(entries.find(({ type }) => type === 'console')).toMatchObject({
      time: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      level: 'error',
      text: expect.stringMatching(/^no stock for http:/) as string,
      line: 3,
    });
    expect(entries.find(({ type }) => type === 'page-error')?.text).toContain('the page failed');
    expect(entries.filter(({ type }) => type === 'request-failed')).toMatchObject(
      expect.arrayContaining([
        expect.objectContaining({ method: 'GET', status: 404 }),
        expect.objectContaining({ reason: expect.stringContaining('ERR_') as string }),
      ]) as Entry[],
    );
    const order = events.map(({ type }) => type).filter((type) => /^(artifacts|cleaned|released)/.test(type));
    expect(order).toEqual(['artifacts-collected', 'cleaned-up', 'released']);
  });

  it('have no secrets of URLs in the log', async () => {
    const failing = run(
      used.pool,
      async ({ page }) => {
        await openShop(page);
        throw new Error('mine');
      },
      { artifacts: { folder, screenshot: false } },
    );
    const { artifacts, session } = await failedRun(failing, undefined);
    const text = readFileSync(artifacts[0]!, 'utf8');
    expect(text).toContain('/shop?session=[redacted]#access_token=[redacted]');
    expect(text).toContain('/reset?[redacted]"');
    expect(text).not.toMatch(/my-(session|token|id|code|cut|password)/);
    expect(text).not.toContain(session!.session_id);
    for (const code of ['\x1b', '\\u001b']) expect(text).not.toContain(code);
  });

  it('are not written after a success, unless they are always wanted', async () => {
    const success = async ({ page }: { page: AnyPage }) => openShop(page);
    const onFailure = await run(used.pool, success, { artifacts: { folder } });
    expect([onFailure.artifacts, readdirSync(folder)]).toEqual([[], []]);
    const always = await run(used.pool, success, { artifacts: { folder, on: 'always', console: false } });
    expect(always.artifacts.map((path) => basename(path))).toEqual(['screenshot.png']);
    expect(readdirSync(folder)).toHaveLength(1);
  });

  it('are of all pages that the callback opened, and of a timeout', async () => {
    const endTimeout = watchTimeouts();
    const failing = run(
      used.pool,
      async (lease) => {
        const opened = (await openPage(lease)) as AnyPage;
        await openShop(opened);
        endTimeout();
        await new Promise(() => {});
      },
      { context: 'new', timeout: LONG, artifacts: { folder } },
    );
    const { artifacts, released } = await failedRun(failing, undefined);
    expect(released).toBe('destroyed');
    const names = artifacts.map((path) => basename(path));
    expect(names).toEqual(['console.jsonl', 'screenshot.png', 'screenshot-2.png']);
    expect(sizeOf(artifacts[2]!)[1]).toBe(3000);
  });

  it("leave the caller's error unchanged when the browser ends at the same time, and keep the log", async () => {
    const mine = new Error('mine');
    const failing = run(
      used.pool,
      async ({ page, session }) => {
        await openShop(page);
        void used.pool.release(session.session_id, { reuse: false }).catch(() => {});
        throw mine;
      },
      { artifacts: { folder } },
    );
    const { artifacts } = await failedRun(failing, mine);
    expect(readLog(artifacts[0]!).map(({ type }) => type)).toContain('page-error');
  });

  it('are the log of a browser that was lost', async () => {
    const failing = run(
      used.pool,
      async ({ page, session, signal }) => {
        await openShop(page);
        await used.pool.release(session.session_id, { reuse: false });
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
      { artifacts: { folder } },
    );
    const error: unknown = await failing.catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: 'BrowserLostError' });
    const { artifacts } = runOf(error)!;
    expect(artifacts.map((path) => basename(path))).toEqual(['console.jsonl']);
    expect(readLog(artifacts[0]!).map(({ type }) => type)).toContain('page-error');
  });

  it("leave the caller's error unchanged when nothing can be written", async () => {
    const mine = new Error('mine');
    const failing = run(
      used.pool,
      async () => {
        // In the meantime, the folder is replaced.
        rmSync(folder, { recursive: true });
        writeFileSync(folder, '');
        throw mine;
      },
      { artifacts: { folder } },
    );
    const { artifacts, cleanupErrors, released } = await failedRun(failing, mine);
    expect({ artifacts, released }).toEqual({ artifacts: [], released: 'reused' });
    expect(cleanupErrors).toMatchObject([{ name: 'ArtifactError', code: 'ERR_ARTIFACT' }]);
  });
});

it('collects what it can when the screenshot fails', async () => {
  const mine = new Error('mine');
  const failing = playwright.withPooledBrowser(
    used.pool,
    async ({ page }) => {
      await openShop(page);
      page.screenshot = () => Promise.reject(new Error('no picture'));
      throw mine;
    },
    { artifacts: { folder, trace: true } },
  );
  const { artifacts, cleanupErrors, released } = await failedRun(failing, mine);
  expect(artifacts.map((path) => basename(path))).toEqual(['console.jsonl', 'trace.zip']);
  expect(cleanupErrors.map(({ message }) => message)).toEqual([
    'The screenshot of the artifacts is missing: no picture',
  ]);
  expect(released).toBe('reused');
});

it('waits a limited time for a page that does not respond', async () => {
  const mine = new Error('mine');
  const failing = playwright.withPooledBrowser(
    used.pool,
    async ({ page }) => {
      page.bringToFront = async () => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      page.screenshot = () => {
        setImmediate(() => {
          vi.advanceTimersByTime(10_000);
          vi.useRealTimers();
        });
        return new Promise(() => {});
      };
      throw mine;
    },
    { artifacts: { folder } },
  );
  const { artifacts, cleanupErrors } = await failedRun(failing, mine);
  expect(artifacts).toEqual([]);
  expect(cleanupErrors[0]!.message).toMatch(/screenshot .* The browser did not respond within 10000 ms\.$/);
  expect(readdirSync(folder)).toEqual([]);
});

it("ends at once when the caller aborts, and keeps the caller's reason", async () => {
  const caller = new AbortController();
  const reason = new Error('enough');
  const aborted = playwright.withPooledBrowser(
    used.pool,
    async ({ page }) => {
      await openShop(page);
      page.screenshot = () => expect.fail('A screenshot was requested');
      caller.abort(reason);
    },
    { signal: caller.signal, artifacts: { folder } },
  );
  const { artifacts } = await failedRun(aborted, reason);
  expect(artifacts.map((path) => basename(path))).toEqual(['console.jsonl']);
});

describe('a trace', () => {
  it('can be read by the trace viewer, and leaves no file elsewhere', async () => {
    const failing = playwright.withPooledBrowser(
      used.pool,
      async ({ page }) => {
        await openShop(page);
        throw new Error('mine');
      },
      { artifacts: { folder, trace: true, screenshot: false, console: false } },
    );
    const { artifacts } = await failedRun(failing, undefined);
    expect(artifacts.map((path) => basename(path))).toEqual(['trace.zip']);
    expect(statSync(artifacts[0]!).mode & 0o777).toBe(0o600);
    expect(readFileSync(artifacts[0]!).toString('latin1')).toMatch(/^PK[^]*trace\.network/);
  });

  it('is not written after a success, and does not disturb the next lease', async () => {
    for (const _ of [1, 2]) {
      const run = await playwright.withPooledBrowser(used.pool, ({ page }) => openShop(page), {
        artifacts: { folder, trace: true },
      });
      expect(run).toMatchObject({ artifacts: [], cleanupErrors: [], released: 'reused' });
    }
    expect(readdirSync(folder)).toEqual([]);
  });

  it('of a context that the callback traces itself is missing, and the run is not changed', async () => {
    const callback = async ({ context }: playwright.PlaywrightHandles) => {
      await context.tracing.stop();
      throw new Error('mine');
    };
    const failing = playwright.withPooledBrowser(used.pool, callback, {
      artifacts: { folder, trace: true, screenshot: false },
    });
    const { artifacts, cleanupErrors } = await failedRun(failing, undefined);
    expect(artifacts).toEqual([]);
    expect(cleanupErrors).toMatchObject([{ name: 'ArtifactError' }]);
  });
});

it('limits the log to the latest messages, and long ones to their beginning', async () => {
  const { artifacts } = await playwright.withPooledBrowser(
    used.pool,
    async ({ page }) => {
      const last = page.waitForEvent('console', (message) => message.text() === 'last');
      await page.evaluate(`for (let n = 0; n < 1200; n++) console.log('message ' + n);
        console.log('x'.repeat(1e6)); console.log('last')`);
      await last;
    },
    { artifacts: { folder, on: 'always', screenshot: false } },
  );
  const log = readLog(artifacts[0]!);
  expect(log).toHaveLength(1001);
  expect(log.slice(0, 2)).toMatchObject([{ type: 'dropped', count: 202 }, { text: 'message 202' }]);
  expect(log.at(-2)!.text).toBe(`${'x'.repeat(4000)}…`);
  expect(log.at(-1)).toMatchObject({ level: 'log', text: 'last' });
});

describe('before anything is sent', () => {
  it('refuses a folder that can not be written', async () => {
    await using service = await FakeService.start();
    const pool = new BrowserPool('pool', service.options);
    const file = join(mkdtempSync(join(tmpdir(), 'file-')), 'file');
    writeFileSync(file, '');
    const artifacts = { folder: join(file, 'artifacts') };
    const run = playwright.withPooledBrowser(pool, () => {}, { artifacts });
    await expect(run).rejects.toMatchObject({
      name: 'InvalidOptionError',
      option: 'artifacts.folder',
      message: expect.stringMatching(
        /^artifacts\.folder .*file\/artifacts can't be written: ENOTDIR/,
      ) as string,
    });
    expect(service.requests).toEqual([]);
    await pool.close();
  });

  it.each([
    [{}, 'artifacts.folder is required.'],
    [{ folder: '' }, "artifacts.folder must be a string that is not empty, not ''."],
    [{ folder: 'a', on: 'never' }, "artifacts.on must be one of 'failure', 'always', not 'never'."],
    [{ folder: 'a', traces: true }, 'artifacts has no option traces. Did you mean trace?'],
    [{ folder: 'a', trace: true }, 'Only Playwright records traces: remove artifacts.trace.'],
  ])('refuses %j', async (artifacts, message) => {
    const run = puppeteer.withPooledBrowser(used.pool, () => {}, {
      artifacts: artifacts as { folder: string },
    });
    await expect(run).rejects.toMatchObject({ name: 'InvalidOptionError', message });
  });
});

it('collects nothing with a connector that does not observe pages', async () => {
  const run = await withPooledBrowser(used.pool, () => {}, {
    connector: plainConnector,
    artifacts: { folder, on: 'always' },
  });
  expect([run.artifacts, readdirSync(folder)]).toEqual([[], []]);
});

it('succeeds without artifacts when the connector fails to observe pages', async () => {
  const connector: Connector = {
    ...plainConnector,
    connect: async (request) => ({
      ...(await plainConnector.connect(request)),
      observe: () => {
        throw new Error('no events');
      },
    }),
  };
  const run = await withPooledBrowser(used.pool, () => 'done', {
    connector,
    artifacts: { folder, on: 'always' },
  });
  const message = 'There are no artifacts, because the pages cannot be observed: no events';
  expect(run).toMatchObject({
    value: 'done',
    artifacts: [],
    cleanupErrors: [{ name: 'ArtifactError', message }],
  });
});
