import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { BrowserLostError, ConnectError } from '../../src/index.js';
import type { LocalPoolEvent } from '../../src/local.js';
import { useCollected } from '../support/collected.js';
import { DRIVERS } from '../support/drivers.js';
import { FaultBench, useQuiet } from '../support/fault-bench.js';
import { titled, useLocalPool } from '../support/local.js';

const events: LocalPoolEvent[] = [];

useCollected();
useQuiet();
const used = useLocalPool({ onLog: (event) => events.push(event) });

describe.each(DRIVERS)('$name', (driver) => {
  it('rejects when Chromium is killed, whatever the callback returns', async () => {
    await using bench = await FaultBench.start(used.local);
    bench.destroys = true;
    const { error, run } = await bench.run(driver, async ({ page, signal }) => {
      const ended = new Promise((resolve) => signal.addEventListener('abort', resolve));
      process.kill(lastPid(), 'SIGKILL');
      await page.title().catch(() => {});
      await ended;
      expect(signal.reason).toBeInstanceOf(BrowserLostError);
      return 'value';
    });
    expect(error).toBeInstanceOf(BrowserLostError);
    expect(['dropped', 'closed-by-service']).toContain(error!['reason']);
    expect(run).toMatchObject({ released: 'destroyed' });
    await bench.settle();
  });

  it('destroys a browser that dies while connecting, and leases another', async () => {
    await using bench = await FaultBench.start(used.local);
    bench.destroys = true;
    bench.road.onMessage = (count) => void (count === 1 && process.kill(lastPid(), 'SIGKILL'));
    const outcome = await bench.run(driver, () => 'value', { connectAttempts: 2 });
    // Puppeteer may connect before the browser dies; then the browser is lost during the callback or not at all.
    if (outcome.status === 'rejected')
      expect([BrowserLostError, ConnectError].some((type) => outcome.error instanceof type)).toBe(true);
    else expect(outcome.run?.released).toMatch(/reused|destroyed/);
    await bench.settle();
  });
});

it('connects to a browser with fifty pages, and closes none of them', async () => {
  await using first = await FaultBench.start(used.local);
  const lent = await first.lend();
  await using observer = await Observer.connect(String(lent['cdp_ws_url']));
  const open = () => observer.send('Target.createTarget', { url: 'about:blank' });
  await Promise.all(Array.from({ length: 49 }, open));
  const opened = await observer.pages();
  expect(opened).toHaveLength(50);
  let unresponsive = 0;
  for (const driver of DRIVERS) {
    await using bench = await FaultBench.start();
    bench.service.script('acquire', (response) => {
      const { cdp_ws_url, webdriver_ws_url } = lent;
      const json = bench.fakeSession({ cdp_ws_url, webdriver_ws_url });
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(json));
    });
    const outcome = await bench.run(driver, async ({ page }) => {
      await page.goto(titled('one of fifty'));
      return page.title();
    });
    expect(outcome).toMatchObject({ value: 'one of fifty', run: { released: 'reused' } });
    await bench.settle();
    // On a very busy machine, a connect is slow, and closes and reports the pages that do not answer within 2 s.
    for (const event of outcome.events)
      if (event.type === 'unresponsive-pages-closed') unresponsive += event.urls.length;
    const left = async () => (await observer.pages()).filter((page) => opened.includes(page));
    await expect.poll(left).toHaveLength(50 - unresponsive);
  }
  first.destroys = true;
});

/** A plain CDP client. It stays connected, so that the session does not expire between two clients. */
class Observer implements AsyncDisposable {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (result: unknown) => void>();
  #lastId = 0;

  static async connect(url: string): Promise<Observer> {
    const socket = new WebSocket(url);
    await once(socket, 'open');
    return new Observer(socket);
  }

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data) => {
      const { id, result } = JSON.parse(String(data)) as { id?: number; result: unknown };
      if (id !== undefined) this.#waiting.get(id)?.(result);
    });
  }

  async send<Result>(method: string, params: object): Promise<Result> {
    const id = ++this.#lastId;
    const answered = new Promise<Result>((resolve) =>
      this.#waiting.set(id, (result) => resolve(result as Result)),
    );
    this.#socket.send(JSON.stringify({ id, method, params }));
    return answered;
  }

  /** Ids of the open pages. */
  async pages(): Promise<string[]> {
    const { targetInfos } = await this.send<{ targetInfos: { targetId: string; type: string }[] }>(
      'Target.getTargets',
      {},
    );
    return targetInfos.flatMap(({ targetId, type }) => (type === 'page' ? targetId : []));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#socket, 'close');
    this.#socket.close();
    await closed;
  }
}

function lastPid(): number {
  const started = events.findLast((event) => event.type === 'browser-started');
  return started?.type === 'browser-started' ? started.pid : Number.NaN;
}
