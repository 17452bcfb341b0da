import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import {
  BrowserPool,
  isPooledBrowserError,
  leaseBrowser,
  mapPooledBrowsers,
  runOf,
  serveProxy,
  withPooledBrowser,
  type MapOptions,
} from '../../src/index.js';
import { reply, type SeenRequest } from '../support/fake-service.js';
import { until } from '../support/played-browser.js';
import { PlayedLease } from '../support/played-lease.js';
import { rejection } from './support.js';

const forever = new Promise<never>(() => {});

/** Starts a call that holds a browser until it is ended. Resolves to its outcome: the error that its user receives. */
type Caller = (played: PlayedLease) => Promise<{ outcome: Promise<unknown>; held: Promise<void> }>;

/** Calls `begin` with a function that reports the lease. */
function holding(begin: (held: () => void) => Promise<unknown>) {
  let onHeld!: () => void;
  const held = new Promise<void>((resolve) => (onHeld = resolve));
  const outcome = begin(onHeld).catch((error: unknown) => error);
  return { held: Promise.race([held, outcome.then(() => {})]), outcome };
}

const run: (release: boolean) => Caller = (releaseOnCrash) => async (played) =>
  holding((held) => {
    const fn = ({ signal }: { signal: AbortSignal }) => {
      held();
      return releaseOnCrash ? forever : once(signal, 'abort').then(() => 'ignored');
    };
    return withPooledBrowser(played.pool, fn, { connector: played.connector, releaseOnCrash });
  });

const CALLERS: Record<string, Caller> = {
  'a run whose callback stops at the abort': run(false),
  'a run with releaseOnCrash whose callback ignores the abort': run(true),
  'a run whose callback closes the pool': async ({ pool, connector }) =>
    holding((held) =>
      withPooledBrowser(
        pool,
        async () => {
          held();
          await pool.close();
        },
        { connector },
      ),
    ),
  leaseBrowser: async ({ pool, connector }) =>
    holding(async (held) => {
      const { signal } = await leaseBrowser(pool, { connector });
      held();
      await once(signal, 'abort');
      return signal.reason;
    }),
  'leaseBrowser whose caller has aborted and never releases': async ({ pool, connector }) =>
    holding(async (held) => {
      const caller = new AbortController();
      const { signal } = await leaseBrowser(pool, { connector, signal: caller.signal });
      caller.abort(new Error('of the caller'));
      held();
      return signal.reason;
    }),
  'a job': async ({ pool, connector }) =>
    holding(async (held) => {
      const task = async () => {
        held();
        await forever;
      };
      const options: MapOptions = { isolation: 'none', replays: 'off', concurrency: 1 };
      const withPages = {
        ...connector,
        connect: async (request: Parameters<typeof connector.connect>[0]) => ({
          ...(await connector.connect(request)),
          openWorkspace: async () => ({
            handles: { page: 'a page' },
            reset: async () => true,
            close: async () => {},
          }),
        }),
      };
      const outcomes: unknown[] = [];
      try {
        for await (const outcome of mapPooledBrowsers(pool, [1, 2], task, {
          ...options,
          connector: withPages,
        }))
          outcomes.push(outcome);
      } finally {
        // A task that was ended with the job has no outcome.
        expect(outcomes).toEqual([]);
      }
    }),
  'a client of a proxy': async ({ pool }) =>
    holding(async (held) => {
      await using proxy = await serveProxy(pool, { replays: 'off' });
      const client = new WebSocket(proxy.url.replace('http', 'ws'));
      await once(client, 'open');
      held();
      await once(client, 'close');
      const refused = new WebSocket(proxy.url.replace('http', 'ws'));
      refused.on('error', () => {});
      const [, { statusCode }] = await once(refused, 'unexpected-response');
      return statusCode;
    }),
};

const OUTCOMES: Record<string, unknown> = {
  'leaseBrowser whose caller has aborted and never releases': { message: 'of the caller' },
  'a client of a proxy': 503,
};

it.for(Object.keys(CALLERS))('ends %s, and waits for the release', async (name) => {
  await using played = await PlayedLease.start();
  const { service, pool } = played;
  let isReleased = false;
  service.script('release', async (response) => {
    await sleep(30);
    isReleased = true;
    reply(response, { status: 204 });
  });
  const { outcome, held } = await CALLERS[name]!(played);
  await held;
  await pool.close();
  expect(isReleased).toBe(true);
  expect(service.released).toEqual(['session-1']);
  const expected = OUTCOMES[name] ?? { name: 'PoolClosedError', code: 'ERR_POOL_CLOSED', pool: 'test' };
  if (typeof expected === 'number') expect(await outcome).toBe(expected);
  else expect(await outcome).toMatchObject(expected);
});

it('keeps the run of a call that it ended', async () => {
  await using played = await PlayedLease.start();
  const { outcome, held } = await run(false)(played);
  await held;
  await played.pool.close();
  const error = await outcome;
  expect(isPooledBrowserError(error)).toBe(true);
  expect(runOf(error)).toMatchObject({ released: 'destroyed', session: { session_id: 'session-1' } });
});

it.for([
  [
    'withPooledBrowser',
    ({ pool, connector }: PlayedLease) => withPooledBrowser(pool, () => {}, { connector }),
  ],
  ['leaseBrowser', ({ pool, connector }: PlayedLease) => leaseBrowser(pool, { connector })],
  ['pool.acquire', ({ pool }: PlayedLease) => pool.acquire()],
] as const)(
  'releases a browser that an open acquire request of %s leases after close()',
  async ([, call]) => {
    await using played = await PlayedLease.start();
    const { service, pool } = played;
    let grant = () => {};
    service.script('acquire', (response) => {
      grant = () => reply(response, { status: 200, json: played.session() });
    });
    const failed = rejection(call(played));
    await until(() => service.of('acquire').length === 1);
    let isClosed = false;
    const closed = pool.close().then(() => (isClosed = true));
    expect(await failed).toMatchObject({ name: 'PoolClosedError' });
    expect(isClosed).toBe(false);
    grant();
    await closed;
    expect(service.released).toEqual(['session-1']);
  },
);

it('refuses calls after close(), and sends nothing', async () => {
  await using played = await PlayedLease.start();
  const { service, pool, connector } = played;
  await pool.close();
  const [first, second] = await Promise.all([
    rejection(withPooledBrowser(pool, () => {}, { connector })),
    rejection(leaseBrowser(pool, { connector })),
  ]);
  for (const error of [first, second]) expect(error).toMatchObject({ name: 'PoolClosedError' });
  // Each call has an error of its own.
  expect(runOf(first)).toBeDefined();
  expect(service.requests).toEqual([]);
});

it('ends many calls, in each stage, without losing a browser', async () => {
  await using played = await PlayedLease.start();
  const { service, connector } = played;
  let sessions = 0;
  const granted: string[] = [];
  service.script('acquire', (response, { body }: SeenRequest) => {
    const session_id = `s${++sessions}`;
    granted.push(session_id);
    const json = played.session({ session_id, tags: body?.['tags'] });
    reply(response, { status: 200, json, delay: sessions % 5 });
  });
  for (let round = 0; round < 40; round++) {
    const pool = new BrowserPool('test', service.options);
    const calls = Array.from({ length: 3 }, (_, at) =>
      withPooledBrowser(pool, () => sleep(at), { connector, replays: 'off' }).catch((error) => error),
    );
    await sleep(round / 4);
    await pool.close();
    expect(new Set(service.released)).toEqual(new Set(granted));
    expect(service.released).toHaveLength(granted.length);
    await Promise.all(calls);
  }
});
