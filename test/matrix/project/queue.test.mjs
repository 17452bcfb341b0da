// The queue of BullMQ, with the Redis of REDIS_URL.
import assert from 'node:assert/strict';
import { after, it } from 'node:test';
import { collectOutcomes, enqueueInputs, workPooledBrowsers } from 'pooled-browser/bullmq';
import { BrowserPool } from 'pooled-browser';
import { startLocalPool } from 'pooled-browser/local';
import { playwright } from 'pooled-browser/playwright';

const local = await startLocalPool({ pools: [{ name: 'default', size: 1 }] });
const pool = new BrowserPool('default', { baseUrl: local.baseUrl, token: local.token });
after(async () => {
  await pool.close();
  await local.close();
});

it('works on a queue, and collects its outcomes', { skip: process.env.REDIS_URL === undefined }, async () => {
  const name = `queue-${process.pid}-${Date.now()}`;
  await enqueueInputs(name, [1, 2, 3]);
  const worker = new AbortController();
  const task = ({ page, input }) => page.evaluate(`${input} * 2`);
  const working = workPooledBrowsers(name, pool, task, { connector: playwright(), signal: worker.signal });
  const values = [];
  for await (const { value } of collectOutcomes(name)) values.push(value);
  assert.deepEqual(
    values.toSorted((a, b) => a - b),
    [2, 4, 6],
  );
  worker.abort();
  await working.catch((error) => assert.equal(error, worker.signal.reason));
  for (let tries = 0; local.stats().leased > 0; tries++) {
    assert.ok(tries < 300, 'a browser stays leased');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
});
