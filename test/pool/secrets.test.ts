import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { inspect } from 'node:util';
import { expect, onTestFinished } from 'vitest';
import { BrowserPool, PooledBrowserError } from '../../src/index.js';
import { JWT, session, TOKEN, type Answer } from '../support/fake-service.js';
import { expectNoSecrets } from '../support/collected.js';
import { until } from '../support/played-browser.js';
import { asJson, breakOff, it, rejection, reset } from './support.js';

const URLS = {
  cdp_ws_url: `wss://browsers.example.com/cdp?x=1&jwt=${JWT}`,
  webdriver_ws_url: `wss://browsers.example.com/session?jwt=${JWT}&y=2`,
  browser_live_view_url: `https://browsers.example.com/live?jwt=${JWT}`,
};

/** Collects the events of the diagnostics channel until the end of the test. */
function published(): unknown[] {
  const events: unknown[] = [];
  const collect = (event: unknown) => void events.push(event);
  subscribe('pooled-browser:event', collect);
  onTestFinished(() => void unsubscribe('pooled-browser:event', collect));
  return events;
}

it('returns the real URLs of a session, hidden from inspect and JSON, which show its other fields', async ({
  service,
  pool,
}) => {
  const json = session({ ...URLS, tags: { a: 'b' }, future: { deep: [1] } });
  service.script('acquire', { status: 200, json });
  const granted = (await pool.acquire())!;
  for (const [field, url] of Object.entries(URLS)) expect(granted[field]).toBe(url);
  expect('cdp_ws_url' in granted).toBe(true);
  const copies = [{ nested: [granted] }, { ...granted }, Object.entries(granted)];
  expectNoSecrets(granted, ...copies, new Error('mine', { cause: granted }));
  for (const shown of [inspect(granted), JSON.stringify(granted)]) {
    expect(shown).toContain('wss://browsers.example.com/cdp?x=1&jwt=[redacted]');
    expect(shown).toContain('&y=2');
    expect(shown).toContain('session-1');
  }
  expect(asJson(granted)).toMatchObject({ tags: { a: 'b' }, future: { deep: [1] } });
  expect(Object.keys(granted)).toContain('session_id');
  expect(Object.keys(granted)).not.toContain('cdp_ws_url');
});

it.for<[what: string, answer: (body: string) => Answer]>([
  ['a session', (body) => ({ status: 200, text: body })],
  ['a session that lacks a field', (body) => ({ status: 200, text: body.replace('created_at', 'created') })],
  ['a response that broke off', (body) => breakOff(body.slice(0, -2))],
  ['a response with an error status', (body) => ({ status: 500, text: body })],
])(
  'remembers the secrets in the URLs of %s, also nested and encoded ones',
  async ([, answer], { service, pool }) => {
    const secret = (where: string) => `canary-${where}-${Math.random()}`;
    const secrets = ['plain', 'nested', 'escaped'].map(secret);
    const [plain, nested, escaped] = secrets;
    const json = session({
      cdp_ws_url: `wss://browsers.example.com/?jwt=${plain}`,
      links: [{ live: `https://browsers.example.com/?jwt=${nested}%2B%20` }],
      other: `https://browsers.example.com/?a=b&jwt=${escaped}`,
    });
    service.script('acquire', answer(JSON.stringify(json).replaceAll('&', String.raw`\u0026`)));
    await pool.acquire().catch(() => {});
    for (const value of [plain, `${nested}+ `, escaped])
      expect(new PooledBrowserError(`it is ${value}.`).message).toBe('it is [redacted].');
  },
);

it('hides secrets in unknown fields of a session', async ({ service, pool }) => {
  const unknown = {
    a_first_field: JWT,
    devtools: { deep: [`wss://x.example.com/?jwt=${JWT}`] },
    bearer: `Bearer ${JWT}`,
    signed: 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjYW5hcnktIn0.c2lnbmF0dXJl',
    echo: TOKEN,
  };
  service.script('acquire', { status: 200, json: { ...unknown, ...session() } });
  const granted = (await pool.acquire())!;
  expectNoSecrets(granted);
  expect(JSON.stringify(granted)).not.toContain('eyJ');
  expect(granted).toMatchObject(unknown);
});

it('shows no token of a pool, and never puts it into a URL or a body', async ({ service, pool }) => {
  expectNoSecrets(new BrowserPool('pool', service.options));
  await pool.acquire({ name: 'n' });
  await pool.release('session-1');
  await pool.replays('session-1');
  expectNoSecrets(pool);
  for (const { path, body } of service.requests) expectNoSecrets({ path, body });
});

it.for<[string, Answer]>([
  ['a reset', reset],
  ['an error that echoes the token', { status: 500, text: `Bearer ${TOKEN} ${TOKEN}` }],
  ['a session that lacks a field', { status: 200, json: session({ created_at: undefined }) }],
  ['a session that broke off', breakOff(JSON.stringify(session(URLS)).slice(0, -20))],
])('shows no secret in the error and the events of %s', async ([, answer], { service, pool }) => {
  const events = published();
  service.script('acquire', answer);
  service.script('release', { status: 400, text: `session ${JWT} ${TOKEN}` });
  expectNoSecrets(await rejection(pool.acquire()));
  // Without a listener, events are published.
  await until(() => events.length > 0);
  expectNoSecrets(await rejection(pool.acquire({}, { onEvent: (event) => void events.push(event) })));
  await pool.close();
  events.forEach(expectNoSecrets);
});
