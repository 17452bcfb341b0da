import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { ConnectError, MissingLibraryError } from '../../src/index.js';
import { rejection, reset } from '../pool/support.js';
import { PlayedLease } from '../support/played-lease.js';

/** The tags by which the library recognizes its lease: others for each request. */
const LEASE_TAGS = {
  'pooled-browser-lease': expect.stringMatching(/^[\da-f-]{36}$/) as string,
  'pooled-browser-owner': expect.stringMatching(/^[\w.-]+\/\d+\/[\dT:.-]+Z$/) as string,
};

const refuseAll = () => Promise.reject(new Error('no targets'));

describe('acquiring', () => {
  it('sends the options in the acquire request, or the documented defaults', async () => {
    await using played = await PlayedLease.start();
    const request = { name: 'a-name', tags: { team: 'a' } };
    await played.run(undefined, { ...request, startUrl: 'https://example.com/', pollTimeout: 2000 });
    const { run } = await played.run();
    expect(played.service.of('acquire').map(({ body }) => body)).toEqual([
      {
        name: 'a-name',
        tags: { team: 'a', ...LEASE_TAGS },
        start_url: 'https://example.com/',
        acquire_timeout_seconds: 2,
      },
      { acquire_timeout_seconds: 25, tags: LEASE_TAGS },
    ]);
    const { timeLeft } = played.told('acquiring')[1]!;
    expect(timeLeft).toBeGreaterThan(290_000);
    expect(timeLeft).toBeLessThanOrEqual(300_000);
    const defaults = { timeout: 30_000, protocol: 'cdp', context: 'default', connectOptions: {} };
    expect(played.requests[1]).toMatchObject(defaults);
    expect(run).toMatchObject({ released: 'reused', replayStatus: 'none' });
  });

  it('sends no host name and no process id with owner: false', async () => {
    await using played = await PlayedLease.start();
    await played.run(undefined, { owner: false });
    await played.pool.acquire({}, { owner: false });
    for (const { body } of played.service.of('acquire'))
      expect(Object.keys((body as { tags: object }).tags)).toEqual(['pooled-browser-lease']);
  });

  it('loads the automation library after the request is sent, because loading would delay the request', async () => {
    const order: string[] = [];
    const write = Reflect.get(Socket.prototype, 'write') as (...args: unknown[]) => boolean;
    vi.spyOn(Socket.prototype, 'write').mockImplementation(function (this: Socket, ...args: unknown[]) {
      if (/^POST .*\/acquire/.test(String(args[0]))) order.push('sent');
      return write.apply(this, args);
    });
    const load = async () => void order.push('loaded');
    await using played = await PlayedLease.start({ load });
    await played.run();
    expect(order.slice(0, 2)).toEqual(['sent', 'loaded']);
  });

  it('has one acquireTimeout for the whole call, including repeated leases', async () => {
    const connect = async () => {
      await sleep(300);
      throw new Error('no');
    };
    await using played = await PlayedLease.start({ connect });
    await played.run(undefined, { acquireTimeout: 60_000, connectAttempts: 2 });
    const [first, second] = played.told('acquiring').map(({ timeLeft }) => timeLeft);
    expect(first).toBeGreaterThan(50_000);
    expect(first! - second!).toBeGreaterThan(250);
  });

  it('ends if the library is missing, with the command that installs it, and leaves nothing leased', async () => {
    const missing = new MissingLibraryError('playwright-core');
    await using played = await PlayedLease.start({ load: () => Promise.reject(missing) });
    played.service.script('acquire', { status: 204 });
    const { error, run } = await played.run();
    expect(error).toBe(missing);
    expect(missing.message).toContain('npm install playwright-core');
    expect(run).toMatchObject({ replays: [], replayStatus: 'none', cleanupErrors: [], acquireAttempts: 1 });
    for (const field of ['session', 'released']) expect(run).not.toHaveProperty(field);
    expect(played.told('ended')).toMatchObject([{ status: 'failed', error, summary: run }]);
  });

  it('counts unknown outcomes over the whole call, and sends no third request', async () => {
    await using played = await PlayedLease.start({ connect: refuseAll });
    const grant = { status: 200, json: played.session() };
    played.service.script('acquire', reset, grant, reset, grant);
    const { run, error } = await played.run(undefined, { connectAttempts: 3 });
    expect(error).toMatchObject({ name: 'PoolConnectionError' });
    expect(run).toMatchObject({ acquireAttempts: 3, unknownAcquires: 2, released: 'destroyed' });
    expect(played.told('outcome-unknown')).toHaveLength(2);
  });
});

describe('connecting', () => {
  it('passes the options to the connector, and emits an event for each step', async () => {
    await using played = await PlayedLease.start();
    const choices = { protocol: 'bidi', context: 'new', connectOptions: { slowMo: 5 } } as const;
    await played.run(undefined, { ...choices, connectTimeout: 25_000 });
    expect(played.requests).toMatchObject([{ ...choices, timeout: 25_000 }]);
    expect(played.told('connecting')).toMatchObject([
      { sessionId: 'session-1', library: 'played', protocol: 'bidi' },
    ]);
    expect(played.told('connected')).toMatchObject([{ sessionId: 'session-1' }]);
    expect(played.told('connect-failed')).toEqual([]);
  });

  it('that the caller aborts is reported as an error, whatever the reason', async () => {
    const abort = new AbortController();
    const connect = () => {
      abort.abort('enough');
      return new Promise<never>(() => {});
    };
    await using played = await PlayedLease.start({ connect });
    const { error } = await played.run(undefined, { signal: abort.signal });
    expect(error).toBe('enough');
    expect(played.told('connect-failed')).toMatchObject([{ error: new Error("'enough' was thrown") }]);
  });

  it('releases an unreachable browser for destruction, reports it, and leases another one', async () => {
    let calls = 0;
    const connect = async () => {
      if (++calls === 1) throw new Error('no targets');
    };
    await using played = await PlayedLease.start({ connect });
    const { run } = await played.run();
    expect(run).toMatchObject({ acquireAttempts: 2, released: 'reused' });
    expect(played.releases).toEqual([
      { session_id: 'session-1', reuse: false },
      { session_id: 'session-1', reuse: true },
    ]);
    expect(played.told('acquired')).toMatchObject([
      { attempt: 1, session: { session_id: 'session-1' } },
      { attempt: 2 },
    ]);
    const [failed] = played.told('connect-failed');
    expect(failed).toMatchObject({ sessionId: 'session-1' });
    expect(failed!.error).toBeInstanceOf(ConnectError);
    expect(played.told('connected')).toHaveLength(1);
    // The replay lists of the failed lease are not needed.
    expect(played.told('replays')).toHaveLength(1);
  });

  it.each([undefined, 1, 4])('is attempted connectAttempts times: %i', async (connectAttempts) => {
    await using played = await PlayedLease.start({ connect: refuseAll });
    let open = 0;
    played.service.script('replays', (response) => {
      open++;
      response.on('close', () => open--);
    });
    const { error, run } = await played.run(undefined, { connectAttempts });
    expect(error).toBeInstanceOf(ConnectError);
    expect(run).toMatchObject({
      acquireAttempts: connectAttempts ?? 2,
      released: 'destroyed',
      session: { session_id: 'session-1' },
      replays: [],
      replayStatus: 'none',
      cleanupErrors: [],
    });
    expect(run!.timings.connect).toBeTypeOf('number');
    await expect(played.lease({ connectAttempts: 1 })).rejects.toBeInstanceOf(ConnectError);
    await played.pool.close();
    expect(played.releases).toHaveLength((connectAttempts ?? 2) + 1);
    // The service learns of the closed connections for replays a moment later.
    await expect.poll(() => open).toBe(0);
  });

  it('is not attempted again if the library is missing', async () => {
    const missing = new MissingLibraryError('played');
    await using played = await PlayedLease.start({ connect: () => Promise.reject(missing) });
    const { error, run } = await played.run(undefined, { replays: 'off' });
    expect(error).toBe(missing);
    expect(run).toMatchObject({ acquireAttempts: 1, released: 'destroyed', replayStatus: 'off' });
  });
});

const lease = (played: PlayedLease) => rejection(played.lease());

it.each<[string, string, (played: PlayedLease) => Promise<unknown>]>([
  ['withPooledBrowser', 'session', async (played) => (await played.run()).error],
  ['leaseBrowser', 'signal', lease],
  ['leaseBrowser', 'downloads', lease],
])(
  '%s refuses a connector with a handle %s, which would replace its own, and releases the browser',
  async (_call, name, failWith) => {
    await using played = await PlayedLease.start({ handles: { page: 'a page', [name]: 'mine' } });
    const message = `has a handle ${name}, which is a name of this library. Rename the handle.`;
    expect(await failWith(played)).toMatchObject({
      name: 'InvalidOptionError',
      option: 'connector',
      message: expect.stringContaining(message) as string,
    });
    expect(played.releases).toEqual([{ session_id: 'session-1', reuse: false }]);
    await expect.poll(() => played.browser.open).toBe(0);
  },
);

it('no message of a library that stays connected reaches the browser after the lease', async () => {
  await using played = await PlayedLease.start();
  const { run } = await played.run(() => 'value', { release: 'reuse' });
  expect(run).toMatchObject({ released: 'reused' });
  const { socket } = played.requests[0]!;
  expect(await socket.ended).toBe('closed-by-us');
  socket.send('too late');
  await expect.poll(() => played.browser.open).toBe(0);
  expect(played.browser.received).not.toContain('too late');
});
