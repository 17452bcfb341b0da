import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BrowserPool, runOf } from '../../src/index.js';
import { DRIVERS } from '../support/drivers.js';
import { FakeService, reply, type Answer } from '../support/fake-service.js';
import { useLocalPool } from '../support/local.js';
import { realSession } from '../support/real-session.js';

const earlier = { replay_id: 'earlier', finished_at: '2026-01-01T00:00:00Z', replay_view_url: 'https://x/1' };
const ours = {
  replay_id: 'ours',
  finished_at: '2026-01-02T00:00:00Z',
  replay_view_url: 'https://x/2?jwt=shown',
};

describe.each(DRIVERS)('$name', ({ run }) => {
  const used = useLocalPool();
  let service: FakeService;
  let pool: BrowserPool;

  beforeEach(async () => {
    service = await FakeService.start();
    pool = new BrowserPool('test', service.options);
    const { session_id: id, ...session } = await realSession(used.local);
    service.script('acquire', { status: 200, json: { session_id: id, ...session } });
    service.script('release', async (response, { body }) => {
      await used.pool.release(body!['session_id'] as string);
      response.writeHead(204).end();
    });
  });

  afterEach(async () => {
    await pool.close();
    await service.close();
  });

  const list = (...lists: unknown[]) =>
    service.script('replays', ...lists.map((json): Answer => ({ status: 200, json })));

  it("returns the complete links of this lease's recordings, and none of the previous lease", async () => {
    list([earlier], [earlier, ours]);
    const { replays, replayStatus } = await run(pool, () => {});
    expect({ replays, replayStatus }).toEqual({ replays: [ours], replayStatus: 'ready' });
  });

  it('lists before the release, so that the list contains nothing of the next lease', async () => {
    list([], [ours]);
    await run(pool, () => {});
    const order = service.requests.map(({ method, path }) => `${method} ${path.split('/').at(-1)}`);
    expect(order).toEqual(['POST acquire', 'GET replays', 'GET replays', 'POST release']);
  });

  it('recognizes its recordings even if the callback ended before the first list was answered', async () => {
    const lists = [[earlier], [earlier, ours]];
    const answer: Answer = (response) => reply(response, { status: 200, json: lists.shift() });
    // The first list takes longer than the whole run.
    service.script('replays', async (...asked) => sleep(500).then(() => answer(...asked)), answer);
    expect(await run(pool, () => {})).toMatchObject({ replays: [ours], replayStatus: 'ready' });
  });

  it('reports pending for an unfinished recording and none for no recording; fields may be null or missing', async () => {
    list([earlier], [{ replay_id: 'ours', started_at: null, finished_at: null }, earlier]);
    expect(await run(pool, () => {})).toMatchObject({
      replays: [{ replay_id: 'ours' }],
      replayStatus: 'pending',
    });
  });

  it.each([
    ['404', { status: 404, json: { code: 'not_found', message: 'gone' } }],
    ['500', { status: 500, text: 'oops' }],
    ['no list', { status: 200, json: { replays: [] } }],
    ['no JSON', { status: 200, text: '<html>' }],
  ] satisfies [string, Answer][])(
    'does not fail the run if the list is invalid: %s',
    async (_name, answer) => {
      service.script('replays', answer);
      const result = await run(pool, () => 'value');
      expect(result).toMatchObject({
        value: 'value',
        replays: [],
        replayStatus: 'unavailable',
        released: 'reused',
      });
      expect(result.cleanupErrors).toHaveLength(1);
    },
  );

  it('returns no recordings of others if the earlier recordings could not be listed', async () => {
    service.script('replays', { status: 500 }, { status: 200, json: [earlier, ours] });
    expect(await run(pool, () => {})).toMatchObject({ replays: [], replayStatus: 'unavailable' });
  });

  it('waits at most replaysTimeout for a list that never comes', async () => {
    service.script('replays', { status: 200, json: [] }, () => {});
    expect(await run(pool, () => 'value', { replaysTimeout: 100 })).toMatchObject({
      value: 'value',
      replayStatus: 'unavailable',
      released: 'reused',
    });
  });

  it('provides the replay links of a failed callback through runOf', async () => {
    list([earlier], [earlier, ours]);
    const error = await run(pool, () => Promise.reject(new Error('mine'))).catch((thrown: unknown) => thrown);
    expect(runOf(error)).toMatchObject({ replays: [ours], replayStatus: 'ready', released: 'reused' });
  });

  it("sends no request with replays: 'off'", async () => {
    expect(await run(pool, () => {}, { replays: 'off' })).toMatchObject({ replays: [], replayStatus: 'off' });
    expect(service.of('replays')).toEqual([]);
  });
});
