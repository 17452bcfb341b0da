import { request } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import * as playwright from '../../../src/playwright.js';
import { useLocalPool } from '../../support/local.js';
import { reply, useHandoffs } from './support.js';

const used = useLocalPool();
const { nextUrl, onEvent } = useHandoffs();
let held: Awaited<ReturnType<typeof playwright.leaseBrowser>>;
let asked: Promise<unknown>;
let url: URL;
beforeAll(async () => {
  held = await playwright.leaseBrowser(used.pool, { onEvent });
  asked = held.handoff({ message: 'Wait.' });
  url = new URL(await nextUrl());
});
afterAll(() => held?.release());

/** Sends a request as no library would, and returns its status. */
function send(
  path: string,
  headers: Record<string, string>,
  { method = 'POST', body = ANSWER } = {},
): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(new URL(path, url), { method, headers }, (response) => {
      response.resume();
      resolve(response.statusCode!);
    });
    sent.on('error', reject).end(body);
  });
}

const ANSWER = JSON.stringify({ status: 'done', note: 'by an attacker' });
const JSON_TYPE = { 'content-type': 'application/json' };
const own = () => ({ ...JSON_TYPE, origin: url.origin });

it.each([
  ['a wrong secret', () => send('/00000000-0000-0000-0000-000000000000/answer', own()), 404],
  ['no secret', () => send('/answer', own()), 404],
  ['another host', () => send('answer', { ...own(), host: 'attacker.example' }), 403],
  ['another origin', () => send('answer', { ...JSON_TYPE, origin: 'http://attacker.example' }), 403],
  ['another port of this machine', () => send('answer', { ...JSON_TYPE, origin: 'http://127.0.0.1:1' }), 403],
  ['no origin, as of a program', () => send('answer', JSON_TYPE), 403],
  ['another site', () => send('answer', { ...own(), 'sec-fetch-site': 'cross-site' }), 403],
  ['a form', () => send('answer', { ...own(), 'content-type': 'text/plain' }), 415],
  ['GET', () => send('answer?status=done', { origin: url.origin }, { method: 'GET', body: '' }), 404],
  ['PUT', () => send('answer', own(), { method: 'PUT' }), 405],
  ['another status', () => send('answer', own(), { body: '{"status":"other","note":""}' }), 400],
  [
    'a huge note',
    () => send('answer', own(), { body: JSON.stringify({ status: 'done', note: 'a'.repeat(1e6) }) }),
    413,
  ],
  ['a file of this package', () => send('../../package.json', own(), { method: 'GET', body: '' }), 404],
])('takes no answer with %s', async (_name, attack, status) => {
  expect(await attack()).toBe(status);
});

it.each([
  ['another origin', { origin: 'http://attacker.example' }],
  ['no origin', {}],
])('opens no WebSocket with %s', async (_name, headers) => {
  const socket = new WebSocket(new URL('live', url).href.replace('http', 'ws'), { headers });
  const error = await new Promise<Error>((resolve) => socket.once('error', resolve));
  expect(error.message).toContain('403');
});

it('lets no other page frame the page, and shows the message as text', async () => {
  const response = await fetch(url);
  expect(response.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  expect(response.headers.get('referrer-policy')).toBe('no-referrer');
  expect(await response.text()).not.toContain('Wait.');
});

it('takes one answer, and refuses the second with what happened', async () => {
  // The head of the second request arrives first.
  let body = (_text: string) => {};
  const second = new Promise<{ status: number; text: string }>((resolve, reject) => {
    const sent = request(new URL('answer', url), { method: 'POST', headers: own() }, (response) => {
      let text = '';
      response
        .on('data', (part) => (text += String(part)))
        .on('end', () => resolve({ status: response.statusCode!, text }));
    });
    sent.on('error', reject);
    sent.flushHeaders();
    body = (text) => void sent.end(text);
  });
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect((await reply(url.href, { status: 'declined', note: 'first' })).status).toBe(200);
  body(ANSWER);
  expect(await second).toEqual({ status: 409, text: expect.stringContaining('Cannot be done') });
  expect(await asked).toEqual({ status: 'declined', note: 'first' });
  await expect(fetch(url)).rejects.toThrow('fetch failed');
});
