import { chromium } from 'playwright-core';
import { expect, it } from 'vitest';
import { serveProxy, type ProxyEvent } from '../../../src/index.js';
import { startCli } from '../../cli/support.js';
import { useLocalPool } from '../../support/local.js';
import { variablesOf } from '../../support/program.js';
import { answer, control, isWaiting, reply, useHandoffs } from './support.js';

const used = useLocalPool();
const { nextUrl, onEvent, person } = useHandoffs();
const json = { 'content-type': 'application/json' };
const ask = (url: string, body: unknown = { message: 'Please look.' }, init: RequestInit = {}) =>
  fetch(url, { method: 'POST', headers: json, body: JSON.stringify(body), ...init });

it('a client of the proxy asks for a person, its commands wait, and it is not idle meanwhile', async () => {
  const events: ProxyEvent[] = [];
  const onClient = (event: ProxyEvent) => void events.push(event);
  await using proxy = await serveProxy(used.pool, { onEvent, onClient, idleTimeout: 2000 });
  expect((await ask(`${proxy.url}/agent/handoff`)).status).toBe(409);
  const browser = await chromium.connectOverCDP(`${proxy.url}/agent`);
  const page = browser.contexts()[0]!.pages()[0]!;
  const asking = ask(`${proxy.url}/agent/handoff`);
  const url = await nextUrl();
  const step = { type: 'handoff', name: 'agent', url, message: 'Please look.' };
  expect(events.filter(({ type }) => type === 'handoff')).toEqual([
    { ...step, sessionId: expect.any(String) as string },
  ]);
  const call = page.evaluate('1 + 1');
  expect(await isWaiting(call)).toBe(true);
  await new Promise((resolve) => setTimeout(resolve, 3000));
  await reply(url, { status: 'done', note: 'seen' });
  const response = await asking;
  expect([response.status, await response.json()]).toEqual([200, { status: 'done', note: 'seen' }]);
  expect(await call).toBe(2);
  const late = await ask(`${proxy.url}/agent/handoff`, { message: 'Nobody', timeout: 200 });
  await nextUrl();
  expect([late.status, await late.json()]).toEqual([
    408,
    { error: expect.stringContaining('Nobody answered') },
  ]);
  await browser.close();
});

it('a client that does not wait gets the state of the hand-off by GET, and never the URL of the page', async () => {
  const events: ProxyEvent[] = [];
  const onClient = (event: ProxyEvent) => void events.push(event);
  await using proxy = await serveProxy(used.pool, { onEvent, onClient });
  const browser = await chromium.connectOverCDP(`${proxy.url}/agent`);
  const address = `${proxy.url}/agent/handoff`;
  const state = async () => (await fetch(address)).json();
  const began = await ask(address, { message: 'Please look.', wait: false });
  expect([began.status, await began.json(), await state()]).toEqual([
    202,
    { status: 'waiting' },
    { status: 'waiting' },
  ]);
  expect((await ask(address, { message: 'Again.', wait: false })).status).toBe(409);
  const url = await nextUrl();
  const view = await person.open(url);
  await view.getByText('Browser agent.').waitFor();
  await answer(view, 'Done', 'seen');
  await expect.poll(state).toEqual({ status: 'done', note: 'seen' });
  await ask(address, { message: 'Nobody.', wait: false, timeout: 200 });
  await nextUrl();
  await expect
    .poll(state)
    .toMatchObject({ status: 'timeout', error: expect.stringContaining('Nobody answered') as string });
  const answers = events.filter(({ type }) => type === 'handoff-answered');
  expect(answers).toMatchObject([
    { name: 'agent', status: 'done' },
    { name: 'agent', status: 'timeout' },
  ]);
  await browser.close();
});

it.each([
  ['GET before anybody was asked', { method: 'GET', body: null }, 404],
  ['PUT', { method: 'PUT' }, 405],
  ['wait that is no boolean', { body: '{"message":"Look.","wait":"no"}' }, 400],
  ['a page', { headers: { ...json, origin: 'http://example.com' } }, 403],
  ['a form', { headers: { 'content-type': 'text/plain' } }, 415],
  ['no message', { body: '{}' }, 400],
  ['no JSON', { body: 'hello' }, 400],
  ['a long body', { body: JSON.stringify({ message: 'a'.repeat(100_000) }) }, 413],
])('the proxy refuses a request for a person: %s', async (_name, init, status) => {
  await using proxy = await serveProxy(used.pool, { onEvent });
  const browser = await chromium.connectOverCDP(`${proxy.url}/agent`);
  expect((await ask(`${proxy.url}/agent/handoff`, {}, init)).status).toBe(status);
  await browser.close();
});

it.each([[[]], [['--local-endpoint']], [['--lazy']]])(
  'a program under exec %j asks for a person, who sees its browser',
  async (flags) => {
    const script = `
      const { chromium } = require('playwright-core');
      (async () => {
        const { BROWSER_POOL_CDP_WS_URL: cdp, BROWSER_POOL_HANDOFF_URL: url } = process.env;
        const browser = await chromium.connectOverCDP(cdp);
        await browser.contexts()[0].pages()[0].goto('data:text/html,<title>Of the program</title>');
        const body = JSON.stringify({ message: 'Look at it.' });
        const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
        console.log(await answer.text());
        const own = await fetch(new URL('answer', url + '/'), { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"status":"done","note":""}' });
        console.log(own.status);
        process.exit();
      })();`;
    const exec = startCli(['exec', 'test', ...flags, '--', 'node', '-e', script], {
      ...variablesOf(used.local),
      SSH_CONNECTION: '192.0.2.1 1 192.0.2.2 22',
    });
    const [text, url] = await exec.prints(
      /A person is needed: Look at it\.\s+Open (\S+)\s+.*ssh -L (\d+):127\.0\.0\.1:\2 /,
    );
    expect(text).toContain('Look at it.');
    const view = await person.open(url!);
    await view.getByRole('tab', { name: 'Of the program' }).waitFor();
    await control(view);
    await answer(view, 'Cannot be done', 'It is empty');
    const { stdout, stderr } = await exec.ended;
    expect(stderr).toContain('The person answered: Cannot be done.');
    const [line, status] = stdout.trim().split('\n');
    expect(JSON.parse(line!)).toEqual({ status: 'declined', note: 'It is empty' });
    expect(Number(status)).toBeGreaterThanOrEqual(400);
  },
);
