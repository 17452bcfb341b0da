import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { inspect } from 'node:util';
import { expect, it } from 'vitest';
import { BrowserPool } from '../../src/service/browser-pool.js';
import { FakeService, JWT, session, TOKEN, type Answer } from '../support/fake-service.js';
import { asJson, breakOff, expectNoSecret, rejection, reset, until } from './support.js';

const URLS = {
  cdp_ws_url: `wss://browsers.example.com/cdp?x=1&jwt=${JWT}`,
  webdriver_ws_url: `wss://browsers.example.com/session?jwt=${JWT}&y=2`,
  browser_live_view_url: `https://browsers.example.com/live?jwt=${JWT}`,
};

it('returns the real URLs of a session when code reads the property, and hides them from inspect and JSON', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  service.script('acquire', { status: 200, json: session(URLS) });
  const granted = (await pool.acquire())!;
  expect(granted.cdp_ws_url).toBe(URLS.cdp_ws_url);
  expect(granted.webdriver_ws_url).toBe(URLS.webdriver_ws_url);
  expect(granted.browser_live_view_url).toBe(URLS.browser_live_view_url);
  expect('cdp_ws_url' in granted).toBe(true);
  expectNoSecret(granted);
  expectNoSecret({ nested: [granted] });
  expectNoSecret({ ...granted });
  expectNoSecret(Object.entries(granted));
  expectNoSecret(new Error('mine', { cause: granted }));
  for (const shown of [inspect(granted), JSON.stringify(granted)]) {
    expect(shown).toContain('wss://browsers.example.com/cdp?x=1&jwt=[redacted]');
    expect(shown).toContain('&y=2');
    expect(shown).toContain('session-1');
  }
});

it('shows the other fields of a session in inspect and JSON', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  const json = session({ tags: { a: 'b' }, future: { deep: [1] } });
  service.script('acquire', { status: 200, json });
  const granted = (await pool.acquire())!;
  expect(asJson(granted)).toMatchObject({ tags: { a: 'b' }, future: { deep: [1] } });
  expect(Object.keys(granted)).toContain('session_id');
  expect(Object.keys(granted)).not.toContain('cdp_ws_url');
});

it('hides secrets in unknown fields of a session', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  const unknown = {
    a_first_field: JWT,
    devtools: { deep: [`wss://x.example.com/?jwt=${JWT}`] },
    bearer: `Bearer ${JWT}`,
    signed: 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjYW5hcnktIn0.c2lnbmF0dXJl',
    echo: TOKEN,
  };
  service.script('acquire', { status: 200, json: { ...unknown, ...session() } });
  const granted = (await pool.acquire())!;
  expectNoSecret(granted);
  expect(JSON.stringify(granted)).not.toContain('eyJ');
  expect(granted).toMatchObject(unknown);
});

it('shows no token in inspect and JSON of a pool', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  await pool.acquire();
  expectNoSecret(pool);
  expectNoSecret(new BrowserPool('pool', service.options));
});

it.each<[string, Answer]>([
  ['a reset', reset],
  ['an error that echoes the token', { status: 500, text: `Bearer ${TOKEN} ${TOKEN}` }],
  ['a 401', { status: 401, json: { code: 'unauthorized', message: `unknown token ${TOKEN}` } }],
  ['a session that lacks a field', { status: 200, json: session({ created_at: undefined }) }],
  ['a session that broke off', breakOff(JSON.stringify(session(URLS)).slice(0, -20))],
])('shows no secret in the error and the events of %s', async (_what, answer) => {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  const events: unknown[] = [];
  const collect = (event: unknown) => void events.push(event);
  subscribe('pooled-browser:event', collect);
  service.script('acquire', answer);
  service.script('release', { status: 400, text: `session ${JWT} ${TOKEN}` });
  expectNoSecret(await rejection(pool.acquire()));
  expectNoSecret(await rejection(pool.acquire({}, { onEvent: (event) => events.push(event) })));
  await pool.close();
  unsubscribe('pooled-browser:event', collect);
  events.forEach(expectNoSecret);
});

it('publishes events without a listener on the diagnostics channel', async () => {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  const events: unknown[] = [];
  const collect = (event: unknown) => void events.push(event);
  subscribe('pooled-browser:event', collect);
  service.script('acquire', { status: 200, json: session(), delay: 30 });
  const controller = new AbortController();
  const acquire = rejection(pool.acquire({ name: 'n' }, controller));
  await until(() => service.of('acquire').length === 1);
  controller.abort();
  await acquire;
  await pool.close();
  unsubscribe('pooled-browser:event', collect);
  expect(events).toMatchObject([
    { type: 'grant-orphaned', pool: 'pool', name: 'n', sessionId: 'session-1' },
    { type: 'released', pool: 'pool', sessionId: 'session-1', released: 'reused' },
  ]);
});

it('never puts the token into a URL or a body', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  await pool.acquire({ name: 'n' });
  await pool.release('session-1');
  await pool.replays('session-1');
  for (const { path, body } of service.requests) expectNoSecret({ path, body });
});
