import { describe, expect, it, vi } from 'vitest';
import { ConnectError } from '../../src/index.js';
import { useCollected } from '../support/collected.js';
import { DRIVERS } from '../support/drivers.js';
import { FakeService, JWT, TOKEN } from '../support/fake-service.js';
import { FaultBench, useQuiet } from '../support/fault-bench.js';
import {
  accept,
  acceptWith,
  answerWith,
  FaultRoad,
  ignore,
  join,
  refuse,
  resetUpgrade,
  textFrame,
  type Upgrade,
} from '../support/fault-road.js';
import { useLocalPool } from '../support/local.js';

const WRONG_KEY =
  'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: wrong\r\n\r\n';

const TIMED_OUT = { message: expect.stringContaining('option connectTimeout') as string };

const UPGRADES: [string, Upgrade, { status?: number; message?: string }][] = [
  ['a 401', refuse(401), { status: 401 }],
  ['a 403', refuse(403), { status: 403 }],
  ['a 404', refuse(404), { status: 404 }],
  ['a 500', refuse(500), { status: 500 }],
  ['a 200', answerWith('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'), { status: 200 }],
  ['no answer', ignore, TIMED_OUT],
  ['a reset', resetUpgrade, {}],
  ['no HTTP', answerWith('SSH-2.0-no-http\r\n'), {}],
  ['a 101 with a wrong key', answerWith(WRONG_KEY), {}],
  ['a 101, then silence', accept, TIMED_OUT],
  ['a 101, then bytes that are no frame', acceptWith(Buffer.alloc(64, 0xff)), {}],
  ['a 101, then a message that is no JSON', acceptWith(textFrame('<html>no JSON')), {}],
  ['a 101, then JSON that is no message', acceptWith(textFrame('[1, null]')), {}],
  ['a 101, then null', acceptWith(textFrame('null')), {}],
];

describe.each(DRIVERS)('$name', (driver) => {
  useCollected();
  useQuiet();
  const used = useLocalPool();

  it.each(UPGRADES)(
    'destroys the browser after %s to the WebSocket upgrade',
    async (_what, upgrade, facts) => {
      await using bench = await FaultBench.start();
      bench.road.play(upgrade);
      let calls = 0;
      // Without a status, some libraries wait until the timeout.
      const limits = { connectTimeout: 700, within: 700 };
      const { error, run } = await bench.run(
        driver,
        () => calls++,
        facts.status === undefined ? limits : { within: 700 },
      );
      expect(error).toBeInstanceOf(ConnectError);
      expect(error).toMatchObject({ code: 'ERR_CONNECT', sessionId: 'lease-1', ...facts });
      expect(error!.cause).toBeInstanceOf(Error);
      expect(run).toMatchObject({
        released: 'destroyed',
        acquireAttempts: 1,
        session: { session_id: 'lease-1' },
      });
      expect(bench.service.of('release').map(({ body }) => body)).toEqual([
        { session_id: 'lease-1', reuse: false },
      ]);
      expect(calls).toBe(0);
      await bench.settle();
    },
  );

  it('leases another browser after a refused, a reset or a garbled upgrade', async () => {
    for (const upgrade of [refuse(401), resetUpgrade, answerWith('SSH-2.0-no-http\r\n')]) {
      await using bench = await FaultBench.start(used.local);
      bench.road.play(upgrade, join);
      const outcome = await bench.run(driver, () => 'value', { connectAttempts: 2 });
      expect(outcome).toMatchObject({ value: 'value', run: { acquireAttempts: 2, released: 'reused' } });
      expect(bench.service.of('release').map(({ body }) => body)).toEqual([
        { session_id: 'lease-1', reuse: false },
        { session_id: 'lease-2', reuse: true },
      ]);
      await bench.settle();
    }
  });

  it('does not follow a redirect of the upgrade', async () => {
    await using other = await FaultRoad.start();
    for (const location of [`ws://${other.host}/?jwt=${JWT}`, `http://${other.host}/`]) {
      await using bench = await FaultBench.start();
      bench.road.play(refuse(302, { location }));
      const { error } = await bench.run(driver, () => {});
      expect(error).toBeInstanceOf(ConnectError);
      expect(error).toMatchObject({ status: 302 });
      expect(bench.road.dialled).toBe(1);
      await bench.settle();
    }
    expect(other.dialled).toBe(0);
  });

  it.each<[string, (host: string) => string]>([
    ['has another scheme', (host) => `http://${host}/?jwt=${JWT}`],
    ['is a file', () => `file:///etc/passwd?jwt=${JWT}`],
    ['contains a user name', (host) => `ws://canary-user:canary-pass@${host}/?jwt=${JWT}`],
    ['is plain ws to another machine', (host) => `ws://${host.replace('127.0.0.1', '0.0.0.0')}/?jwt=${JWT}`],
    ['is plain ws to a far host', () => `ws://browsers.example.com/?jwt=${JWT}`],
    ['is no URL', () => `nowhere?jwt=${JWT}`],
  ])('does not connect to a session URL that %s', async (_what, url) => {
    await using bench = await FaultBench.start();
    const field = driver.name.endsWith('BiDi') ? 'webdriver_ws_url' : 'cdp_ws_url';
    const json = bench.fakeSession({ [field]: url(bench.road.host) });
    bench.service.script('acquire', { status: 200, json });
    const { error, run } = await bench.run(driver, () => {});
    expect(error).toBeInstanceOf(ConnectError);
    expect(error!.message).toContain(field);
    expect(run).toMatchObject({ released: 'destroyed' });
    expect(bench.road.dialled).toBe(0);
    await bench.settle();
  });

  it.each(['..', '.', '', '%2e%2e', 'a/b', 'a\r\nb', '\uD800'])(
    'refuses the pool name %j before it sends a request',
    async (name) => {
      await using service = await FakeService.start();
      vi.stubEnv('BROWSER_POOL_BASE_URL', service.baseUrl);
      vi.stubEnv('BROWSER_POOL_ACCESS_TOKEN', TOKEN);
      const running = driver.run(name as never, () => {});
      await expect(running).rejects.toMatchObject({ code: 'ERR_INVALID_OPTION' });
      expect(service.requests).toEqual([]);
    },
  );
});
