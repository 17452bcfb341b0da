import { expect, it } from 'vitest';
import { trustedUrl } from '../../src/connect/connect-session.js';
import { ConnectError, type BrowserSession } from '../../src/index.js';
import { session } from '../support/fake-service.js';

const FAR = 'https://pool.example.com/v1';
const HERE = 'http://127.0.0.1:8080/v1';

function endpoint(url: string, baseUrl = FAR): string {
  return trustedUrl(session({ cdp_ws_url: url }) as never, 'cdp', baseUrl);
}

it('returns the URL of the requested protocol', () => {
  const urls = { cdp_ws_url: 'wss://a.example.com/cdp', webdriver_ws_url: 'wss://a.example.com/session' };
  const granted = session(urls) as unknown as BrowserSession;
  expect(trustedUrl(granted, 'cdp', FAR)).toBe(urls.cdp_ws_url);
  expect(trustedUrl(granted, 'bidi', FAR)).toBe(urls.webdriver_ws_url);
});

it.each([
  ['wss://far.example.com/cdp?jwt=x', FAR],
  ['wss://far.example.com/cdp?jwt=x', HERE],
  ['wss://127.0.0.1:1/', FAR],
  ['ws://127.0.0.1:1/', HERE],
  ['ws://localhost:1/', 'http://[::1]:8080/'],
  ['ws://[::1]:1/', 'http://localhost:8080/'],
])('accepts %s from a service at %s', (url, baseUrl) => {
  expect(endpoint(url, baseUrl)).toBe(url);
});

it.each([
  ['nowhere', HERE, /is not a URL/],
  ['http://127.0.0.1:1/', HERE, /is not a WebSocket URL/],
  ['https://far.example.com/', FAR, /is not a WebSocket URL/],
  ['wss://user@far.example.com/', FAR, /user name or a password/],
  ['wss://:pass@far.example.com/', FAR, /user name or a password/],
  ['ws://user:pass@127.0.0.1:1/', HERE, /user name or a password/],
  ['ws://far.example.com/', FAR, /not encrypted/],
  ['ws://far.example.com/', HERE, /not encrypted/],
  ['ws://127.0.0.1:1/', FAR, /points to this machine, but the service is elsewhere/],
])('refuses %s from a service at %s', (url, baseUrl, why) => {
  const act = () => endpoint(url, baseUrl);
  expect(act).toThrow(ConnectError);
  expect(act).toThrow(
    expect.objectContaining({ sessionId: 'session-1', message: expect.stringMatching(why) }),
  );
  expect(act).toThrow(/cdp_ws_url/);
});
