import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { BrowserPool } from '../../src/index.js';
import { startLocalPool } from '../../src/local.js';
import { mapPooledBrowsers, withPooledBrowser } from '../../src/puppeteer.js';
import { startCli } from '../cli/support.js';
import { rejection } from '../pool/support.js';
import { describeWithFirefox } from '../support/firefox.js';
import { processesOf } from '../support/processes.js';
import { useSite } from '../support/site.js';
import { ask, closed, startApi, titled, tryWebSocket, until, type Api } from './support.js';

const BIDI = { protocol: 'bidi' } as const;
const NEW = { id: 1, method: 'session.new', params: { capabilities: {} } };
const TREE = { id: 2, method: 'browsingContext.getTree', params: { maxDepth: 0 } };

const site = useSite(({ headers }, response) => {
  response.writeHead(200, { 'content-type': 'text/html', 'set-cookie': 'left=1' });
  response.end(headers.cookie ?? 'none');
});

/** The last process of a pool, and the folder of its profile. */
function running(api: Api): { pid: number; profile: string } {
  const { pid } = api.eventsOf('browser-started').at(-1)!;
  const [, profile] = /--profile=([^\0]+)/.exec(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))!;
  return { pid, profile: profile! };
}

it('refuses options of a local pool that Firefox does not have', async () => {
  const error = await rejection(startLocalPool({ browser: 'firefox', pools: [{ recordAll: true }] }));
  expect(error).toMatchObject({ name: 'InvalidOptionError', option: 'recordAll' });
  expect(error.message).toContain("Firefox can't be recorded");
});

describeWithFirefox('a local pool of Firefox', () => {
  let api: Api;
  /** One for all tests that leave it as it was. */
  const firefox = async () => (api ??= await startApi({ browser: 'firefox' }));
  const poolOf = ({ pool: { baseUrl, token } }: Api) => new BrowserPool('default', { baseUrl, token });

  it('has BiDi, and refuses CDP and recordings by name', async () => {
    const { pool } = await firefox();
    const session = await api.lease();
    expect(session.cdp_ws_url).toBe('');
    const { outcome, socket } = await tryWebSocket(session.webdriver_ws_url);
    expect(outcome).toBe('open');
    const started = (await ask(socket, NEW)) as { result: { capabilities: object } };
    expect(started.result.capabilities).toMatchObject({ browserName: 'firefox' });
    const recording = await api.call('POST', `/browsers/${session.session_id}/replays`, { body: {} });
    expect(recording).toMatchObject({ status: 501, body: { message: 'Only Chromium can be recorded.' } });
    await api.release(session);
    await closed(socket);
    expect(pool.stats()).toMatchObject({ idle: 1, destroyed: 0 });
  });

  it('ends the session of each client, so that the next one has a session of its own', async () => {
    await firefox();
    const session = await api.lease();
    for (const message of [undefined, { id: 3, method: 'session.end', params: {} }]) {
      const { socket } = await tryWebSocket(session.webdriver_ws_url);
      expect(await ask(socket, TREE)).toMatchObject({ error: 'invalid session id' });
      expect(await ask(socket, NEW)).toMatchObject({ type: 'success' });
      const { socket: second } = await tryWebSocket(session.webdriver_ws_url);
      expect(await ask(second, NEW)).toMatchObject({ error: 'session not created' });
      second.close();
      expect(await ask(socket, TREE)).toMatchObject({ type: 'success' });
      if (message) expect(await ask(socket, message)).toMatchObject({ type: 'success' });
      else socket.close();
      await closed(socket);
    }
    await api.release(session);
  });

  it('a client that ends its session itself does not keep the next one waiting for an answer that does not come', async () => {
    await firefox();
    const session = await api.lease();
    const { socket } = await tryWebSocket(session.webdriver_ws_url);
    expect(await ask(socket, NEW)).toMatchObject({ type: 'success' });
    expect(await ask(socket, { id: 3, method: 'session.end', params: {} })).toMatchObject({
      type: 'success',
    });
    await closed(socket);
    const { socket: next } = await tryWebSocket(session.webdriver_ws_url);
    // A command without an answer would be waited for 20 s.
    expect(await Promise.race([ask(next, NEW), sleep(15_000, 'late')])).toMatchObject({ type: 'success' });
    next.close();
    await api.release(session);
  });

  it.runIf(process.platform === 'linux')('keeps other programs of this machine out of its port', async () => {
    const { profile } = running(await firefox());
    const { ws_port } = JSON.parse(readFileSync(`${profile}/WebDriverBiDiServer.json`, 'utf8')) as {
      ws_port: number;
    };
    const { socket } = await tryWebSocket(`ws://127.0.0.1:${ws_port}/session`);
    const status = { id: 4, method: 'session.status', params: {} };
    await expect.poll(() => ask(socket, status)).toMatchObject({ result: { ready: false } });
    expect(await ask(socket, NEW)).toMatchObject({ error: 'session not created' });
    expect(await ask(socket, TREE)).toMatchObject({ error: 'invalid session id' });
    socket.terminate();
  });

  it('has pages of 1280 x 720 pixels and a mouse, as Chromium', async () => {
    await using pool = poolOf(await firefox());
    const script = `[innerWidth, innerHeight, matchMedia('(hover)').matches, matchMedia('(pointer: fine)').matches]`;
    const { value } = await withPooledBrowser(pool, ({ page }) => page.evaluate(script), BIDI);
    expect(value).toEqual([1280, 720, true, true]);
  });

  it('runs the tasks of a job in contexts of their own, in one browser', async () => {
    await using pool = poolOf(await firefox());
    const before = api.pool.stats();
    const visit = async ({
      page,
    }: {
      page: { goto(url: string): Promise<unknown>; evaluate(text: string): unknown };
    }) => {
      await page.goto(site.url);
      return (await page.evaluate('document.body.innerText')) as string;
    };
    // The context of each task is removed while the page of the next one opens, each time at another moment.
    const outcomes = mapPooledBrowsers(
      pool,
      Array.from({ length: 20 }, (_, index) => index * 10),
      async ({ page, input }) => {
        if (input === 0 || input === 100) return visit({ page });
        await sleep(input);
        return 'none';
      },
      { ...BIDI, concurrency: 1 },
    );
    const values: unknown[] = [];
    for await (const outcome of outcomes)
      values.push(outcome.status === 'fulfilled' ? outcome.value : outcome.reason);
    expect(values).toEqual(Array(20).fill('none'));
    expect(api.pool.stats()).toMatchObject({ destroyed: before.destroyed, idle: 1 });
  });

  it("destroys the browser if a callback with context: 'new' used the browser's own context", async () => {
    await using pool = poolOf(await firefox());
    const { released, cleanupErrors } = await withPooledBrowser(
      pool,
      ({ browser }) => browser.setCookie({ name: 'left', value: '1', domain: 'localhost' }),
      { ...BIDI, context: 'new' },
    );
    expect(released).toBe('destroyed');
    expect(String(cleanupErrors[0]!.cause)).toContain(
      'no command that removes the storage of its own context',
    );
  });

  it("gives the browser's own context with release: 'reuse', and leaves it as it is", async () => {
    await using pool = poolOf(await firefox());
    const visit = ({
      page,
    }: {
      page: { goto(url: string): Promise<unknown>; evaluate(text: string): unknown };
    }) => page.goto(site.url).then(() => page.evaluate('document.body.innerText'));
    const runs: unknown[] = [];
    for (const release of ['reuse', 'auto', 'reuse', 'destroy'] as const) {
      const { value, released } = await withPooledBrowser(pool, visit, { ...BIDI, release });
      runs.push([value, released]);
    }
    const kept = ['left=1', 'reused'];
    expect(runs).toEqual([['none', 'reused'], ['none', 'reused'], kept, ['left=1', 'destroyed']]);
  });

  it.runIf(process.platform === 'linux').each([true, false])(
    'is replaced after SIGKILL, with no process and no profile left (leased: %s)',
    async (isLeased) => {
      const { pool } = await firefox();
      await until('the browser is idle', () => pool.stats().idle === 1);
      const session = isLeased ? await api.lease() : undefined;
      const socket = session && (await tryWebSocket(session.webdriver_ws_url)).socket;
      if (socket) expect(await ask(socket, NEW)).toMatchObject({ type: 'success' });
      const { pid, profile } = running(api);
      const { destroyed } = pool.stats();
      expect(processesOf(profile).length).toBeGreaterThan(2);
      process.kill(pid, 'SIGKILL');
      await until('the browser is destroyed', () => pool.stats().destroyed === destroyed + 1);
      if (socket) await closed(socket);
      if (session) expect(await api.release(session)).toBe(404);
      await until('its profile is removed', () => !existsSync(profile));
      expect(processesOf(profile)).toEqual([]);
      await until('another browser is idle', () => pool.stats().idle === 1);
    },
  );

  it("serves baseUrl: 'local', and ends with this process", async () => {
    const options = { baseUrl: 'local', local: { browser: 'firefox', size: 1 } } as const;
    await using pool = new BrowserPool('embedded', options);
    const run = await withPooledBrowser(
      pool,
      async ({ page, browser }) => [await page.title(), await browser.version()],
      { ...BIDI, startUrl: titled('embedded') },
    );
    expect(run).toMatchObject({
      value: ['embedded', expect.stringMatching(/^firefox\//)],
      released: 'reused',
    });
  });

  it('ends with the program that serves it, also when that program is killed', async () => {
    const serve = startCli(['serve', '--browser', 'firefox', '--size', '1', '--json']);
    await serve.prints(/"serving".*\n/);
    expect(processesOf(serve.folder).length).toBeGreaterThan(2);
    await serve.end('SIGKILL');
    await expect.poll(() => processesOf(serve.folder), { timeout: 20_000 }).toEqual([]);
  });
});
