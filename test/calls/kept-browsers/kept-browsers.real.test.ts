import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { expect, it } from 'vitest';
import { serveProxy, type PoolProxy, type ProxyEvent, type ProxyOptions } from '../../../src/index.js';
import { useLocalPool } from '../../support/local.js';

const used = useLocalPool({ pools: [{ name: 'test', size: 2, timeoutSeconds: 300 }] });
const leased = () => used.local.stats().leased;
const newFile = () => join(mkdtempSync(join(tmpdir(), 'k-')), 'kept.json');
const keptIn = (file: string): Kept[] => JSON.parse(readFileSync(file, 'utf8')).browsers;

interface Kept {
  sessionId: string;
  lease: string;
  leasedAt: string;
  endsAt: string;
}

const serve = (keepFile: string, options: ProxyOptions = {}) =>
  serveProxy(used.pool, { keepFile, lifetime: 600_000, ...options });

interface Lease {
  sessionId: string;
  age: number;
  remaining: number;
}

/** Connects, and returns the facts of the lease, and the text of the first page. */
async function visit(proxy: PoolProxy, name: string): Promise<Lease & { text: string }> {
  const client = await chromium.connectOverCDP(`${proxy.url}/${name}`);
  const lease = await (await fetch(`${proxy.url}/${name}/lease`)).json();
  const text = await client.contexts()[0]!.pages()[0]!.innerText('body');
  await client.close();
  return { ...(lease as Lease), text };
}

async function extend(proxy: PoolProxy, name: string, ms: number): Promise<void> {
  await fetch(`${proxy.url}/${name}/lease`, { method: 'POST', body: JSON.stringify({ extend: ms }) });
}

it('continues the lifetime of a lease, with its extension, and then destroys the browser', async () => {
  const file = newFile();
  const times = { lifetime: 12_000, maxLifetime: 24_000 };
  const first = await serve(file, times);
  const { sessionId } = await visit(first, 'alice');
  await extend(first, 'alice', 6000);
  await first.close();
  expect(leased()).toBe(1);
  const events: ProxyEvent[] = [];
  await using second = await serve(file, { ...times, onClient: (event) => events.push(event) });
  const again = await visit(second, 'alice');
  expect(again.sessionId).toBe(sessionId);
  expect(events.find(({ type }) => type === 'leased')).toMatchObject({ kept: 'found', name: 'alice' });
  const [{ leasedAt, endsAt }] = keptIn(file) as [Kept];
  // Not from the beginning of the second proxy.
  expect(Math.abs(Date.parse(endsAt) - Date.parse(leasedAt) - 18_000)).toBeLessThan(5);
  expect(again.age + again.remaining).toBeLessThan(18_100);
  const end = () => events.findLast(({ type }) => type === 'released');
  await expect
    .poll(end, { timeout: 60_000 })
    .toMatchObject({ sessionId, summary: { released: 'destroyed' } });
  expect(leased()).toBe(0);
  expect(keptIn(file)).toEqual([]);
}, 120_000);

it('releases a browser whose lifetime has ended while no proxy ran', async () => {
  const file = newFile();
  const first = await serve(file);
  await visit(first, 'alice');
  await first.close();
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.replace(/"endsAt": "[^"]*"/, `"endsAt": "${new Date().toISOString()}"`));
  const events: ProxyEvent[] = [];
  await using second = await serve(file, { keep: 200, onClient: (event) => events.push(event) });
  await expect.poll(leased, { timeout: 20_000 }).toBe(0);
  await expect.poll(() => keptIn(file)).toEqual([]);
  expect(second.counts.leased).toBe(0);
  const { text: shown } = await visit(second, 'alice');
  expect(shown).toMatch(/^This is a new browser\. The one before it was released after its lifetime of /);
  expect(events.find(({ type }) => type === 'leased')).toMatchObject({ kept: 'gone', name: 'alice' });
  await expect.poll(leased, { timeout: 20_000 }).toBe(0);
});

it('releases browsers without a name at the end, and those whose name nobody uses for longer than keep', async () => {
  const file = newFile();
  const proxy = await serve(file, { keep: 200 });
  const unnamed = await chromium.connectOverCDP(proxy.url);
  await visit(proxy, 'alice');
  expect(keptIn(file)).toHaveLength(1);
  await expect.poll(() => keptIn(file), { timeout: 20_000 }).toEqual([]);
  expect(leased()).toBe(1);
  await proxy.close();
  await unnamed.close();
  expect(leased()).toBe(0);
});

it('leases a new browser if the session belongs to another lease, and leaves that one alone', async () => {
  const file = newFile();
  const first = await serve(file);
  await visit(first, 'alice');
  await first.close();
  const [{ lease, sessionId }] = keptIn(file) as [Kept];
  const other = await used.pool.acquire();
  // The file names the session of somebody else.
  writeFileSync(file, readFileSync(file, 'utf8').replace(sessionId, other!.session_id));
  await used.pool.release(sessionId, { reuse: false });
  await using second = await serve(file);
  const { sessionId: found, text } = await visit(second, 'alice');
  expect(text).toMatch(/The one before it has ended at the service while no proxy used it: its pages/);
  expect(found).not.toBe(other!.session_id);
  expect(keptIn(file)).toEqual([expect.objectContaining({ sessionId: found })]);
  expect(keptIn(file)[0]!.lease).not.toBe(lease);
  expect(leased()).toBe(2);
  await used.pool.release(other!.session_id);
});
