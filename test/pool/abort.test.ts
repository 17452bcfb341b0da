import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { BrowserPool, PoolEvent } from '../../src/index.js';
import { abortSweep, turnsFor } from '../support/abort-sweep.js';
import { reply, session, type FakeService } from '../support/fake-service.js';
import { expectNoSecrets } from '../support/collected.js';
import { until } from '../support/played-browser.js';
import { drip, hang, it, rejection } from './support.js';

const REASON = new Error('enough');

/** Aborts an acquire request, whose response comes afterwards. Returns the events after all releases. */
async function abortGrant(service: FakeService, pool: BrowserPool, json = session()): Promise<PoolEvent[]> {
  let grant!: () => void;
  service.script('acquire', (response) => void (grant = () => reply(response, { status: 200, json })));
  const controller = new AbortController();
  const events: PoolEvent[] = [];
  const onEvent = (event: PoolEvent) => {
    events.push(event);
    throw new Error('of a listener, which changes nothing');
  };
  const request = { name: 'n', tags: { a: 'b' } };
  const acquire = rejection(pool.acquire(request, { signal: controller.signal, onEvent }));
  await until(() => service.of('acquire').length === 1);
  controller.abort(REASON);
  expect(await acquire).toBe(REASON);
  expect(service.released).toStrictEqual([]);
  let isClosed = false;
  const close = pool.close().then(() => (isClosed = true));
  await sleep(50);
  expect(isClosed).toBe(false);
  grant();
  await close;
  expectNoSecrets(events);
  return events;
}

it('sends nothing for a signal that was aborted before', async ({ service, pool }) => {
  const signal = AbortSignal.abort(REASON);
  const calls = [
    pool.acquire({}, { signal }),
    pool.release('session-1', { signal }),
    pool.flush({ signal }),
    pool.replays('session-1', { signal }),
    pool.startReplay('session-1', {}, { signal }),
    pool.stopReplay('session-1', 'r', { signal }),
    pool.describe({ signal }),
  ];
  for (const call of calls) expect(await rejection(call)).toBe(REASON);
  expect(service.requests).toHaveLength(0);
});

it.for([REASON, null])('rejects with the reason %s unchanged', async (reason, { service, pool }) => {
  let answer!: () => void;
  service.script('acquire', (response) => void (answer = () => reply(response, { status: 204 })));
  service.script('flush', hang);
  const controller = new AbortController();
  const calls = [pool.acquire({}, controller), pool.flush(controller)].map((call) => rejection(call));
  await until(() => service.requests.length === 2);
  controller.abort(reason);
  for (const call of calls) expect(await call).toBe(reason);
  answer();
});

it('rejects at once, and releases the browser that is leased later', async ({ service, pool }) => {
  expect(await abortGrant(service, pool)).toStrictEqual([
    { type: 'grant-orphaned', pool: 'pool', name: 'n', tags: { a: 'b' }, sessionId: 'session-1' },
    { type: 'released', pool: 'pool', sessionId: 'session-1', released: 'reused' },
  ]);
  expect(service.of('release').map(({ body }) => body)).toStrictEqual([
    { session_id: 'session-1', reuse: true },
  ]);
});

it('reports a late lease that could not be released', async ({ service, pool }) => {
  service.script('release', { status: 403, json: { code: 'forbidden', message: 'no' } });
  expect(await abortGrant(service, pool)).toMatchObject([
    { type: 'grant-orphaned', sessionId: 'session-1' },
    { type: 'release-failed', pool: 'pool', sessionId: 'session-1', error: { code: 'ERR_RELEASE' } },
  ]);
  expect(service.released).toStrictEqual(['session-1']);
});

it('releases a browser of a late response that is broken', async ({ service, pool }) => {
  await abortGrant(service, pool, session({ cdp_ws_url: null }));
  expect(service.released).toStrictEqual(['session-1']);
});

it('returns or releases every leased browser, whenever the abort occurs', async ({ service, pool }) => {
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

it('leaves no listener on the signal after a success or an abort', async ({ service, pool }) => {
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

it('rejects with the reason when the abort comes in the middle of a body', async ({ service, pool }) => {
  for (const route of ['replays', 'pool', 'flush'] as const) service.script(route, drip(200));
  const controller = new AbortController();
  const { signal } = controller;
  const calls = [pool.replays('session-1', { signal }), pool.describe({ signal }), pool.flush({ signal })];
  const errors = calls.map((call) => rejection(call));
  await until(() => service.requests.length === 3);
  // The head of the responses, and more, has arrived.
  await sleep(50);
  controller.abort(REASON);
  for (const error of errors) expect(await error).toBe(REASON);
});
