import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { BrowserPool, DetachedLease, InvalidOptionError, type BrowserSession } from '../../src/index.js';
import { attachBrowser } from '../../src/lease/lease-browser.js';
import { session, TOKEN } from '../support/fake-service.js';
import { plainConnector } from '../support/plain-connector.js';

const WHOLE = { pool: 'pool', baseUrl: 'https://pool.example', session: session({ timeout_seconds: 90 }) };

function secretOf(record: object, prefix = 'pooled-browser-lease-1.'): string {
  return prefix + Buffer.from(JSON.stringify(record)).toString('base64url');
}

describe('the secret of a detached lease', () => {
  it.each([
    ['a pool', secretOf({ ...WHOLE, pool: undefined })],
    ['an address', secretOf({ ...WHOLE, baseUrl: 7 })],
    ['a session', secretOf({ ...WHOLE, session: undefined })],
    ['the session id', secretOf({ ...WHOLE, session: { ...WHOLE.session, session_id: undefined } })],
    ['this version', secretOf(WHOLE, 'pooled-browser-lease-2.')],
    ['the type of a text', undefined as unknown as string],
  ])('is refused without %s, with what to pass', async (_what, secret) => {
    const attaching = attachBrowser(secret, { connector: plainConnector });
    await expect(attaching).rejects.toThrow(InvalidOptionError);
    await expect(attaching).rejects.toThrow(/the result of detach\(\), or its complete secret/);
  });

  it('names the service of the lease if the pool belongs to another one', async () => {
    await using pool = new BrowserPool('pool', { baseUrl: 'https://other.example', token: TOKEN });
    const attaching = attachBrowser(secretOf(WHOLE), { pool, connector: plainConnector });
    await expect(attaching).rejects.toThrow(/belongs to the service at https:\/\/pool\.example/);
  });
});

it('shows the session and the time until its end, and not the secret', () => {
  const lease = new DetachedLease({ ...WHOLE, session: WHOLE.session as unknown as BrowserSession });
  expect(inspect(lease)).toBe("DetachedLease { sessionId: 'session-1', expiresAfter: 90000 }");
});
