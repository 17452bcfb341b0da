import { AsyncLocalStorage } from 'node:async_hooks';
import { tracingChannel } from 'node:diagnostics_channel';
import { inspect } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { BrowserPool, type RunEvent, type Stage, type StageTrace } from '../../src/index.js';
import { leaseBrowser, withPooledBrowser } from '../../src/playwright.js';
import { FakeService } from '../support/fake-service.js';
import { useLocalPool } from '../support/local.js';

const STAGES: readonly Stage[] = ['acquire', 'connect', 'callback', 'cleanup', 'replays', 'release'];
const EVENTS = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;

const used = useLocalPool();
const undo: (() => void)[] = [];
afterEach(() => undo.splice(0).forEach((unsubscribe) => unsubscribe()));

describe('the tracing channels', () => {
  it('report the start and the end of each stage, with its run and session', async () => {
    const seen = listen();
    const events: RunEvent[] = [];
    const { session } = await withPooledBrowser(used.pool, () => 'mine', {
      onEvent: (event) => events.push(event),
    });
    const facts = { pool: 'test', run: events[0]!.run, attempt: 1 };
    for (const stage of STAGES) {
      const told = seen.filter((one) => one.stage === stage);
      expect(told.map(({ event }) => event)).toEqual(['start', 'end', 'asyncStart', 'asyncEnd']);
      expect(new Set(told.map(({ trace }) => trace)).size, `${stage} has one object`).toBe(1);
      const sessionId = session.session_id;
      expect(told[0]!.atThatTime).toStrictEqual(stage === 'acquire' ? facts : { ...facts, sessionId });
      expect(told.at(-1)!.atThatTime).toStrictEqual({ ...facts, sessionId, result: undefined });
    }
  });

  it('contain no secret, and not the value of the callback', async () => {
    const seen = listen();
    const { session } = await withPooledBrowser(used.pool, () => 'the value of the callback');
    const shown = inspect(seen, { depth: Number.POSITIVE_INFINITY, showHidden: true });
    expect(shown).toContain(session.session_id);
    for (const secret of [new URL(session.cdp_ws_url).searchParams.get('jwt')!, used.local.token]) {
      expect(shown).not.toContain(secret);
    }
    expect(shown).not.toContain('the value of the callback');
  });

  it("contain the error of a stage; the caller's own error is unchanged", async () => {
    const seen = listen();
    const mine = new Error('mine');
    await expect(withPooledBrowser(used.pool, () => Promise.reject(mine))).rejects.toBe(mine);
    const errors = seen.filter(({ event }) => event === 'error');
    expect(errors.map(({ stage, trace }) => [stage, trace.error])).toEqual([['callback', mine]]);
  });

  it('report a failed release, although the run does not fail', async () => {
    const { pool, local } = used;
    await using service = await FakeService.start();
    const lent = await pool.acquire({ acquire_timeout_seconds: 60 });
    const json = { ...lent, cdp_ws_url: lent!.cdp_ws_url, webdriver_ws_url: lent!.webdriver_ws_url };
    service.script('acquire', { status: 200, json });
    service.script('release', { status: 403, json: { code: 'forbidden', message: 'no' } });
    const refused = new BrowserPool('test', service.options);
    const seen = listen();
    const run = await withPooledBrowser(refused, () => {}, { releaseTimeout: 60_000 });
    expect(run.released).toBe('failed');
    const failure = seen.find(({ stage, event }) => stage === 'release' && event === 'error');
    expect(failure).toMatchObject({ trace: { error: { code: 'ERR_RELEASE' } } });
    await pool.release(lent!.session_id, { reuse: false });
    await refused.close();
    expect(local.stats().leased).toBe(0);
  });

  it('report no cleanup or release that does not happen', async () => {
    const seen = listen();
    const browser = await leaseBrowser(used.pool, { release: 'leave', replays: 'off' });
    await browser.release();
    expect(new Set(seen.map(({ stage }) => stage))).toEqual(new Set(['acquire', 'connect']));
    await used.pool.release(browser.session.session_id);
  });

  it('report each connection of a lease', async () => {
    const seen = listen();
    const browser = await leaseBrowser(used.pool);
    await browser.reconnect();
    await browser.release();
    const connects = seen.filter(({ stage, event }) => stage === 'connect' && event === 'asyncEnd');
    const { session_id: sessionId } = browser.session;
    expect(connects.map(({ trace }) => trace)).toMatchObject([{ sessionId }, { sessionId }]);
  });

  it('pass a bound store to the callback, and to no other stage', async () => {
    const store = new AsyncLocalStorage<string>();
    const { start } = tracingChannel<string, StageTrace>('pooled-browser:callback');
    start.bindStore(store, ({ sessionId }) => `inside ${sessionId}`);
    undo.push(() => start.unbindStore(store));
    const run = store.run('outside', () =>
      withPooledBrowser(used.pool, async ({ page }) => {
        await page.title();
        return store.getStore();
      }),
    );
    const { value, session } = await run;
    expect(value).toBe(`inside ${session.session_id}`);
    expect(store.getStore()).toBeUndefined();
  });
});

interface Seen {
  stage: Stage;
  event: (typeof EVENTS)[number];
  trace: StageTrace;
  /** A copy: later events change the trace. */
  atThatTime: object;
}

function listen(): Seen[] {
  const seen: Seen[] = [];
  for (const stage of STAGES) {
    const channel = tracingChannel<unknown, StageTrace>(`pooled-browser:${stage}`);
    const note = (event: Seen['event']) => (trace: unknown) =>
      void seen.push({ stage, event, trace: trace as StageTrace, atThatTime: { ...(trace as StageTrace) } });
    const subscribers = Object.fromEntries(EVENTS.map((event) => [event, note(event)])) as never;
    channel.subscribe(subscribers);
    undo.push(() => channel.unsubscribe(subscribers));
  }
  return seen;
}
