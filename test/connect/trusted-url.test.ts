import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { trustedUrl } from '../../src/connect/connect-session.js';
import { ConnectError } from '../../src/index.js';
import { rejection } from '../pool/support.js';

const FAR = 'https://pool.example.com/v1';
const HERE = 'http://127.0.0.1:8080/v1';

async function urlOf(cdpUrl: string, baseUrl: string, insecure = false): Promise<string> {
  const url = await trustedUrl({ id: 'session-1', session: {}, cdpUrl }, 'cdp', {
    baseUrl: new URL(baseUrl),
    insecure,
    network: {},
  });
  return url.href;
}

it('returns the URL of the requested protocol, and names the other one if it has none', async () => {
  const urls = { cdpUrl: 'wss://a.example.com/cdp', bidiUrl: 'wss://a.example.com/session' };
  const grant = { id: 'session-1', session: {}, ...urls };
  const trust = { baseUrl: new URL(FAR), insecure: false, network: {} };
  expect((await trustedUrl(grant, 'cdp', trust)).href).toBe(urls.cdpUrl);
  expect((await trustedUrl(grant, 'bidi', trust)).href).toBe(urls.bidiUrl);
  const { bidiUrl: _bidi, ...onlyCdp } = grant;
  const error = await rejection(trustedUrl(onlyCdp, 'bidi', trust));
  expect(error).toBeInstanceOf(ConnectError);
  expect(error.message).toBe("The session has no WebDriver BiDi URL. Use protocol 'cdp'.");
});

it.each([
  ['wss://far.example.com/cdp?jwt=x', FAR],
  ['wss://far.example.com/cdp?jwt=x', HERE],
  ['wss://127.0.0.1:1/', FAR],
  ['ws://127.0.0.1:1/', HERE],
  ['ws://localhost:1/', 'http://[::1]:8080/'],
  ['ws://[::1]:1/', 'http://localhost:8080/'],
  ['ws://127.0.0.1:1/', 'local:pool'],
])('accepts %s from a service at %s', async (url, baseUrl) => {
  expect(await urlOf(url, baseUrl)).toBe(url);
});

it.each([
  ['nowhere', HERE, /is not a URL/],
  ['ftp://127.0.0.1:1/', HERE, /is not a WebSocket URL/],
  ['wss://user@far.example.com/', FAR, /user name or a password/],
  ['wss://:pass@far.example.com/', FAR, /user name or a password/],
  ['ws://user:pass@127.0.0.1:1/', HERE, /user name or a password/],
  ['ws://far.example.com/', FAR, /not encrypted/],
  ['ws://far.example.com/', HERE, /not encrypted/],
  ['ws://127.0.0.1:1/', FAR, /points to this machine, but the service is elsewhere/],
])('refuses %s from a service at %s', async (url, baseUrl, why) => {
  const error = await rejection(urlOf(url, baseUrl));
  expect(error).toBeInstanceOf(ConnectError);
  expect(error).toMatchObject({ sessionId: 'session-1', message: expect.stringMatching(why) });
  expect(error.message).toMatch(/^The session's CDP URL/);
});

it('sends nothing to the http address of a debugging port that it does not trust, and lets the port choose only a path', async () => {
  let requests = 0;
  let named = 'ws://elsewhere.example:1/devtools/browser/id?a=b';
  const server = createServer((_request, response) => {
    requests++;
    response.end(JSON.stringify({ webSocketDebuggerUrl: named }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  await expect(urlOf(url, FAR)).rejects.toThrow(/points to this machine/);
  await expect(urlOf(`http://user@127.0.0.1:${port}`, HERE)).rejects.toThrow(/user name/);
  expect(requests).toBe(0);
  expect(await urlOf(`${url}/base/?c=d#e`, HERE)).toBe(`ws://127.0.0.1:${port}/devtools/browser/id?a=b`);
  for (named of ['foo:.evil.example/', 'foo:@evil.example/', 'http://a/', 'nothing'])
    await expect(urlOf(url, HERE), named).rejects.toThrow(/names no WebSocket/);
  server.closeAllConnections();
  server.close();
});

it('accepts a URL that is not encrypted from a service in a private network, with the option insecure', async () => {
  expect(await urlOf('ws://10.0.0.7:9222/', 'http://10.0.0.1/', true)).toBe('ws://10.0.0.7:9222/');
  await expect(urlOf('ws://user@10.0.0.7/', 'http://10.0.0.1/', true)).rejects.toThrow(/user name/);
});
