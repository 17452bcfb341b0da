import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BrowserPool, InvalidOptionError, PoolServiceError } from '../../src/index.js';
import { FakeService, TOKEN, UNREACHABLE } from '../support/fake-service.js';
import { expectNoSecret, rejection } from './support.js';

let service: FakeService;
let pool: BrowserPool;

beforeEach(async () => {
  service = await FakeService.start();
  pool = new BrowserPool('pool', service.options);
});

afterEach(async () => {
  await pool.close();
  await service.close();
});

describe('startReplay and stopReplay', () => {
  it('send the fields of the API, and return the replay with its fields', async () => {
    const json = {
      replay_id: 'r',
      started_at: null,
      finished_at: 7,
      replay_view_url: 'https://x/1',
      more: 1,
    };
    service.script('start-replay', { status: 201, json });
    const replay = await pool.startReplay('s', { framerate: 5, max_duration_in_seconds: 60 });
    expect(replay).toStrictEqual({ replay_id: 'r', replay_view_url: 'https://x/1', more: 1 });
    await pool.startReplay('s');
    await pool.stopReplay('s', 'r');
    expect(service.requests.map(({ method, path, body }) => [method, path, body])).toStrictEqual([
      ['POST', '/browsers/s/replays', { framerate: 5, max_duration_in_seconds: 60 }],
      ['POST', '/browsers/s/replays', {}],
      ['POST', '/browsers/s/replays/r/stop', undefined],
    ]);
  });

  it.each([400, 403, 404, 500])('fail with the error of the service: %i', async (status) => {
    service.script('start-replay', { status, json: { code: 'some_code', message: 'no' } });
    service.script('stop-replay', { status, json: { code: 'some_code', message: 'no' } });
    for (const asking of [pool.startReplay('s'), pool.stopReplay('s', 'r')]) {
      const error = await rejection(asking);
      expect(error).toBeInstanceOf(PoolServiceError);
      expect(error).toMatchObject({ status, code: 'some_code', pool: 'pool', sessionId: 's' });
      expectNoSecret(error);
    }
  });

  it('reject invalid arguments before anything is sent', async () => {
    const calls = [
      pool.startReplay('a/b'),
      pool.startReplay('s', { framerate: 0 }),
      pool.startReplay('s', { framerate: 1.5 }),
      pool.startReplay('s', { max_duration_in_seconds: -1 }),
      pool.startReplay('s', { frameRate: 5 } as never),
      pool.startReplay('s', {}, { timeout: 5 } as never),
      pool.stopReplay('s', '..'),
      pool.stopReplay('s', undefined as never),
      pool.stopReplay('%2e', 'r'),
    ];
    for (const error of await Promise.all(calls.map((call) => rejection(call))))
      expect(error).toBeInstanceOf(InvalidOptionError);
    expect(service.requests).toEqual([]);
  });

  it('abort with their signal', async () => {
    service.script('start-replay', () => {});
    service.script('stop-replay', () => {});
    const signal = AbortSignal.timeout(50);
    const errors = await Promise.all([
      rejection(pool.startReplay('s', {}, { signal })),
      rejection(pool.stopReplay('s', 'r', { signal })),
    ]);
    expect(errors).toEqual([signal.reason, signal.reason]);
  });
});

it('name the pool and the session in a connection error', async () => {
  service.script('replays', (response) => void response.destroy());
  service.script('flush', (response) => void response.destroy());
  expect(await rejection(pool.replays('s'))).toMatchObject({
    code: 'ERR_POOL_NO_RESPONSE',
    pool: 'pool',
    sessionId: 's',
  });
  expect(await rejection(pool.flush())).toMatchObject({ code: 'ERR_POOL_NO_RESPONSE', pool: 'pool' });
  await using unreachable = new BrowserPool('pool', { baseUrl: UNREACHABLE, token: TOKEN });
  expect(await rejection(unreachable.describe())).toMatchObject({
    code: 'ERR_POOL_UNREACHABLE',
    pool: 'pool',
  });
});
