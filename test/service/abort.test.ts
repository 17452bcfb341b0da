import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { PoolClosedError } from '../../src/shared/service-errors.js';
import { BrowserPool } from '../../src/service/browser-pool.js';
import type { PoolEvent } from '../../src/service/events.js';
import { abortSweep, turnsFor } from '../support/abort-sweep.js';
import { FakeService, reply, session } from '../support/fake-service.js';
import { drip, expectNoSecret, hang, rejection, until } from './support.js';

const REASON = new Error('enough');

it('sends nothing for a signal that was aborted before', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  const signal = AbortSignal.abort(REASON);
  const calls = [
    pool.acquire({}, { signal }),
    pool.release('session-1', { signal }),
    pool.flush({ signal }),
    pool.replays('session-1', { signal }),
    pool.describe({ signal }),
  ];
  for (const call of calls) expect(await rejection(call)).toBe(REASON);
  expect(service.requests).toHaveLength(0);
});

it.each([REASON, 'a string', 0, null])('rejects with the reason %s unchanged', async (reason) => {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  let answer!: () => void;
  service.script('acquire', (response) => void (answer = () => reply(response, { status: 204 })));
  service.script('flush', hang);
  const controller = new AbortController();
  const calls = [pool.acquire({}, controller), pool.flush(controller)].map((call) => rejection(call));
  await until(() => service.requests.length === 2);
  controller.abort(reason);
  for (const call of calls) expect(await call).toBe(reason);
  answer();
  await pool.close();
});

it('rejects immediately during the wait, and releases the browser that is still leased', async () => {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  let grant!: () => void;
  const granted = new Promise<void>((resolve) => (grant = resolve));
  service.script('acquire', async (response) => {
    await granted;
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(session()));
  });
  const controller = new AbortController();
  const events: PoolEvent[] = [];
  const acquire = rejection(
    pool.acquire(
      { name: 'n', tags: { a: 'b' } },
      { signal: controller.signal, onEvent: (event) => events.push(event) },
    ),
  );
  await until(() => service.of('acquire').length === 1);
  controller.abort(REASON);
  expect(await acquire).toBe(REASON);
  expect(service.released).toStrictEqual([]);
  let closed = false;
  const close = pool.close().then(() => (closed = true));
  await sleep(50);
  expect(closed).toBe(false);
  grant();
  await close;
  expect(service.released).toStrictEqual(['session-1']);
  expect(service.of('release')[0]?.body).toStrictEqual({ session_id: 'session-1', reuse: true });
  expect(events).toStrictEqual([
    { type: 'grant-orphaned', pool: 'pool', name: 'n', tags: { a: 'b' }, sessionId: 'session-1' },
    { type: 'released', pool: 'pool', sessionId: 'session-1', released: 'reused' },
  ]);
  expectNoSecret(events);
});

it('repeats the release of a late lease until the service confirms it', async () => {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  service.script('acquire', { status: 200, json: session(), delay: 50 });
  service.script('release', { status: 503 }, { status: 500 }, { status: 204 });
  const controller = new AbortController();
  const acquire = rejection(pool.acquire({}, controller));
  await until(() => service.of('acquire').length === 1);
  controller.abort(REASON);
  await acquire;
  await pool.close();
  expect(service.released).toStrictEqual(['session-1', 'session-1', 'session-1']);
});

it('reports a late lease that could not be released', async () => {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  service.script('acquire', { status: 200, json: session(), delay: 50 });
  service.script('release', { status: 403, json: { code: 'forbidden', message: 'no' } });
  const controller = new AbortController();
  const events: PoolEvent[] = [];
  const acquire = rejection(
    pool.acquire({}, { signal: controller.signal, onEvent: (event) => events.push(event) }),
  );
  await until(() => service.of('acquire').length === 1);
  controller.abort(REASON);
  await acquire;
  await pool.close();
  expect(events).toMatchObject([
    { type: 'grant-orphaned', sessionId: 'session-1' },
    { type: 'release-failed', sessionId: 'session-1', error: { code: 'ERR_RELEASE' } },
  ]);
  expect(service.released).toStrictEqual(['session-1']);
  expectNoSecret(events);
});

it('returns or releases every leased browser, whenever the abort occurs', async () => {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  const granted: string[] = [];
  const handed: string[] = [];
  service.script('acquire', (response) => {
    const id = `session-${granted.length}`;
    granted.push(id);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(session({ session_id: id })));
  });
  await pool.flush();
  // Both must happen, or this test proves nothing.
  for (const delay of abortSweep(() => handed.length > 0 && service.released.length > 0)) {
    const controller = new AbortController();
    let isOver = false;
    const acquire = pool
      .acquire({}, controller)
      .then(
        (session) => handed.push(session!.session_id),
        (error) => expect(error).toBe(REASON),
      )
      .finally(() => (isOver = true));
    await turnsFor(delay, () => isOver);
    controller.abort(REASON);
    await acquire;
  }
  await pool.close();
  expect([...handed, ...service.released]).toHaveLength(granted.length);
  expect(new Set([...handed, ...service.released])).toStrictEqual(new Set(granted));
});

it('leaves no listener on the signal after a success or an abort', async () => {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  const controller = new AbortController();
  const { signal } = controller;
  await pool.acquire({}, { signal });
  await pool.release('session-1', { signal });
  await pool.flush({ signal });
  await pool.replays('session-1', { signal });
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  service.script('acquire', { status: 204, delay: 50 });
  const acquire = rejection(pool.acquire({}, { signal }));
  await until(() => service.of('acquire').length === 2);
  controller.abort(REASON);
  await acquire;
  await pool.close();
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

it('rejects with the reason when the abort comes in the middle of a body', async () => {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  for (const route of ['replays', 'pool', 'flush'] as const) service.script(route, drip(200));
  const controller = new AbortController();
  const { signal } = controller;
  const calls = [pool.replays('session-1', { signal }), pool.describe({ signal }), pool.flush({ signal })];
  const errors = calls.map((call) => rejection(call));
  await until(() => service.requests.length === 3);
  await sleep(100);
  controller.abort(REASON);
  for (const error of errors) expect(await error).toBe(REASON);
  await pool.close();
});

it('still sends the release of a late lease while the pool closes', async () => {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  service.script('acquire', { status: 200, json: session(), delay: 100 });
  const acquire = pool.acquire();
  await until(() => service.of('acquire').length === 1);
  const close = pool.close();
  expect(await rejection(pool.acquire())).toBeInstanceOf(PoolClosedError);
  const granted = await acquire;
  expect(granted?.session_id).toBe('session-1');
  await close;
  expect(service.of('acquire')).toHaveLength(1);
});

it('releases a browser whose response broke off after the abort', async () => {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  service.script('acquire', { status: 200, json: session({ cdp_ws_url: null }), delay: 50 });
  const controller = new AbortController();
  const acquire = rejection(pool.acquire({}, controller));
  await until(() => service.of('acquire').length === 1);
  controller.abort(REASON);
  expect(await acquire).toBe(REASON);
  await pool.close();
  expect(service.released).toStrictEqual(['session-1']);
});

it('releases a browser even if the listener throws', async () => {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  service.script('acquire', { status: 200, json: session({ created_at: null }) });
  const onEvent = () => {
    throw new Error('mine');
  };
  expect(await rejection(pool.acquire({}, { onEvent }))).toMatchObject({ code: 'ERR_POOL_RESPONSE' });
  await pool.close();
  expect(service.released).toStrictEqual(['session-1']);
});
