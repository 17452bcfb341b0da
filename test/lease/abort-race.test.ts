import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { BrowserPool } from '../../src/service/browser-pool.js';
import { abortSweep, turnsFor } from '../support/abort-sweep.js';
import { FakeService, session } from '../support/fake-service.js';
import { acquire as acquireFrom } from './support.js';

it('returns or releases every leased browser, whenever the abort or the deadline occurs', async () => {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  let answers = 0;
  const granted: string[] = [];
  const handed: string[] = [];
  service.script('acquire', (response) => {
    answers++;
    if (answers % 3 === 1) return void response.writeHead(204).end();
    const id = `session-${granted.length}`;
    granted.push(id);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(session({ session_id: id })));
  });
  await pool.flush();
  let round = 0;
  // Both must happen, or this test proves nothing.
  for (const delay of abortSweep(() => handed.length > 0 && service.released.length > 0)) {
    const controller = new AbortController();
    let isOver = false;
    const acquire = acquireFrom(pool, {
      acquireTimeout: round++ % 2 ? delay + 0.1 : 10_000,
      pollTimeout: 1000,
      retry: { minTimeout: 1, maxTimeout: 2 },
      signal: controller.signal,
    })
      .then(
        (session) => handed.push(session.session_id),
        () => {},
      )
      .finally(() => (isOver = true));
    await turnsFor(delay, () => isOver);
    controller.abort();
    await acquire;
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
  }
  await pool.close();
  expect([...handed, ...service.released]).toHaveLength(granted.length);
  expect(new Set([...handed, ...service.released])).toStrictEqual(new Set(granted));
});
