import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { attachBrowser, BrowserPool, InvalidOptionError, runOf } from '../../src/index.js';
import { rejection } from '../pool/support.js';
import { expectNoSecrets } from '../support/collected.js';
import { session, TOKEN } from '../support/fake-service.js';
import { plainConnector } from '../support/plain-connector.js';
import { PlayedLease } from '../support/played-lease.js';

const WHOLE = {
  pool: 'pool',
  baseUrl: 'https://pool.example',
  grant: { id: 'session-1', session: session() },
  lease: { pool: 'pool', id: 'lease-1' },
};

function secretOf(record: object, prefix = 'pooled-browser-lease-3.'): string {
  return prefix + Buffer.from(JSON.stringify(record)).toString('base64url');
}

describe('detach', () => {
  it('leaves the browser leased and its recordings known, for attachBrowser', async () => {
    await using played = await PlayedLease.start();
    const [earlier, ours] = [{ replay_id: 'earlier' }, { replay_id: 'ours' }];
    const lists = [[earlier], [earlier], [earlier, ours]].map((json) => ({ status: 200, json }));
    played.service.script('replays', ...lists);
    const lease = await played.lease();
    const detached = await lease.detach();
    expect(await lease.release()).toMatchObject({ released: 'left' });
    expect(played.steps).toEqual(['disconnect']);
    await expect.poll(() => played.browser.open).toBe(0);

    const { pool, connector } = played;
    for (const given of [detached, detached.secret]) {
      // Whatever this lease uses, the one before used the browser's own context.
      const attached = await attachBrowser(given, { pool, connector, context: 'new' });
      expect(attached).toMatchObject({ page: 'a page', session: { session_id: 'session-1' } });
      expect(await attached.release()).toMatchObject({ released: 'reused', replays: [ours] });
      expect(played.browser.received.splice(0).join()).toContain('clearDataForOrigin');
    }
    expect(played.service.of('acquire')).toHaveLength(1);
  });

  it('lets several attach: whoever releases later does not end the next lease of the browser', async () => {
    await using played = await PlayedLease.start();
    const detached = await (await played.lease()).detach();
    const { pool, connector, service } = played;
    const attach = (release: 'auto' | 'destroy') => attachBrowser(detached, { pool, connector, release });
    const [first, second, third] = [await attach('auto'), await attach('auto'), await attach('destroy')];
    expect(await first.release()).toMatchObject({ released: 'reused', cleanupErrors: [] });
    // The same session, with another lease.
    const next = await played.lease();
    played.browser.received.splice(0);
    for (const late of [second, third]) {
      const { released, cleanupErrors } = await late.release();
      expect([released, String(cleanupErrors[0]!.cause)]).toEqual([
        'left',
        expect.stringMatching(/has released/),
      ]);
    }
    expect(played.browser.received).toEqual([]);
    expect(service.of('release')).toHaveLength(1);
    expect(await next.release()).toMatchObject({ released: 'reused' });
    expect(service.of('release')).toHaveLength(2);
  });

  it('is refused after the end of the lease, and rejects with the reason after an abort', async () => {
    await using played = await PlayedLease.start();
    const lease = await played.lease();
    await lease.release();
    await expect(lease.detach()).rejects.toMatchObject({ code: 'ERR_LEASE_OVER', sessionId: 'session-1' });
    const caller = new AbortController();
    await using aborted = await played.lease({ signal: caller.signal });
    caller.abort('left');
    expect(await rejection(aborted.detach())).toBe('left');
  });

  it('shows the secret only through the property secret', async () => {
    await using played = await PlayedLease.start();
    played.service.script('acquire', { status: 200, json: played.session({ timeout_seconds: 90 }) });
    const lease = await played.lease();
    const detached = await lease.detach();
    expect(inspect(detached)).toBe("DetachedLease { sessionId: 'session-1', expiresAfter: 90000 }");
    const record = Buffer.from(detached.secret.split('.')[1]!, 'base64url').toString();
    expect(record).toContain(played.browser.url);
    expect(record).not.toContain(TOKEN);
    expectNoSecrets(detached);
    for (const shown of [inspect(detached, { showHidden: true }), JSON.stringify(detached), `${detached}`])
      expect(shown).not.toContain(detached.secret);
    await played.pool.release('session-1');
  });
});

describe('attachBrowser', () => {
  it.each([
    ['a pool', secretOf({ ...WHOLE, pool: undefined })],
    ['an address', secretOf({ ...WHOLE, baseUrl: 7 })],
    ['a session', secretOf({ ...WHOLE, grant: { id: 'session-1' } })],
    ['the session id', secretOf({ ...WHOLE, grant: { ...WHOLE.grant, id: '..' } })],
    ['the request that leased it', secretOf({ ...WHOLE, lease: undefined })],
    ['this version', secretOf(WHOLE, 'pooled-browser-lease-2.')],
    ['JSON', 'pooled-browser-lease-3.e30e30'],
    ['a record', 'pooled-browser-lease-3.'],
    ['a secret', ''],
    ['the type of a text', undefined as unknown as string],
  ])('refuses a secret without %s, and says what to pass', async (_what, secret) => {
    const error = await rejection(attachBrowser(secret, { connector: plainConnector }));
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error.message).toMatch(/the result of detach\(\), or its complete secret/);
  });

  it('refuses a pool of another service, so that the other service does not receive the token', async () => {
    await using pool = new BrowserPool('pool', { baseUrl: 'https://other.example', token: TOKEN });
    const attaching = attachBrowser(secretOf(WHOLE), { pool, connector: plainConnector });
    await expect(attaching).rejects.toThrow(/belongs to the service at https:\/\/pool\.example/);
  });

  it('refuses options that only concern acquiring', async () => {
    const options = { connector: plainConnector, acquireTimeout: 5 } as { connector: typeof plainConnector };
    await expect(attachBrowser(secretOf(WHOLE), options)).rejects.toThrow(/acquireTimeout/);
  });

  it('leaves the browser leased if it cannot be reached', async () => {
    let connects = 0;
    const connect = async () => {
      if (++connects > 1) throw new Error('gone');
    };
    await using played = await PlayedLease.start({ connect });
    const detached = await (await played.lease()).detach();
    const { pool, connector } = played;
    const error = await rejection(attachBrowser(detached, { pool, connector }));
    expect(error).toMatchObject({ name: 'ConnectError', sessionId: 'session-1' });
    expect(runOf(error)).toMatchObject({ released: 'left', acquireAttempts: 0 });
    expect([connects, played.releases]).toEqual([2, []]);
  });
});
