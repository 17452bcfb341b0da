import { describe, expect, it } from 'vitest';
import { hang, reset, until } from '../../service/support.js';
import { useCollected } from '../../support/collected.js';
import { JWT, reply, session, TOKEN, type Answer } from '../../support/fake-service.js';
import { expectUnharmed, SESSION_ID, typesOf, useRecordingBench } from './support.js';

useCollected();
const bench = useRecordingBench();

const STARTED = { replay_id: 'replay-1', started_at: '2026-01-02T03:04:05Z' };
const FINISHED = {
  ...STARTED,
  finished_at: '2026-01-02T03:05:05Z',
  replay_view_url: 'https://x/1?jwt=shown',
};
const EARLIER = { replay_id: 'earlier', finished_at: '2026-01-01T00:00:00Z' };
const LATER = { replay_id: 'later', started_at: '2026-01-02T03:05:06Z' };

const REFUSALS: [string, Answer][] = [
  ['403', { status: 403, json: { code: 'plan', message: `not for ${TOKEN}` } }],
  ['400', { status: 400, json: { code: 'bad_request', message: 'headless browsers have no screen' } }],
  ['404', { status: 404, text: 'no such path' }],
  ['500', { status: 500, text: `oops ${JWT}` }],
  ['a reset', reset],
  ['a page', { status: 200, text: '<html>', headers: { 'content-type': 'text/html' } }],
  ['no object', { status: 201, json: ['replay-1'] }],
];

describe('a recorded run', () => {
  it('starts the recording once the browser is leased, stops it before the release, and waits for its film after', async () => {
    bench.list([EARLIER], [EARLIER, STARTED], [STARTED, LATER], [FINISHED, LATER]);
    const recorded = await bench.run();
    expectUnharmed(recorded);
    expect(recorded.run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready', cleanupErrors: [] });
    const { asked } = recorded;
    expect(asked.slice(0, 2).toSorted()).toEqual(['GET replays', 'POST replays']);
    expect(asked.slice(2)).toEqual([
      'POST stop',
      'GET replays',
      'POST release',
      'GET replays',
      'GET replays',
    ]);
    expect(typesOf(recorded)).toEqual(['recording-started', 'recording-stopped', 'replays', 'replays']);
    expect(recorded.run?.timings).toMatchObject({ replays: expect.any(Number) });
  });

  it('does not wait when the film is written by the time of the release', async () => {
    bench.list([], [FINISHED]);
    const { asked, run } = await bench.run();
    expect(run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready' });
    expect(asked.at(-1)).toBe('POST release');
  });

  it('passes frame rate and length on, in the units of the service', async () => {
    bench.list([], [FINISHED]);
    await bench.run({ recording: { frameRate: 12, maxDuration: 90_500 } });
    expect(bench.service.of('start-replay')[0]!.body).toEqual({ framerate: 12, max_duration_in_seconds: 91 });
    expect(bench.service.of('stop-replay')[0]!.path).toBe(`/browsers/${SESSION_ID}/replays/replay-1/stop`);
  });

  it('gives the browser back, and returns the link, when the film is never written', async () => {
    bench.list([], [STARTED]);
    const recorded = await bench.run({ replaysTimeout: 800 });
    expectUnharmed(recorded);
    expect(recorded.run).toMatchObject({ replays: [STARTED], replayStatus: 'pending', cleanupErrors: [] });
    expect(bench.service.of('replays').length).toBeLessThan(6);
  });

  it('keeps the link that the start told when the list does not show the recording', async () => {
    bench.list([]);
    expect((await bench.run({ replaysTimeout: 300 })).run).toMatchObject({
      replays: [STARTED],
      replayStatus: 'pending',
    });
  });

  it('takes null for a missing end', async () => {
    bench.list([], [{ ...STARTED, finished_at: null }], [FINISHED]);
    expect((await bench.run()).run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready' });
  });

  it('knows its recording even where it began before the first list was made', async () => {
    bench.list([EARLIER, STARTED], [EARLIER, FINISHED]);
    expect((await bench.run()).run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready' });
  });

  it('gives a failed callback its film, too', async () => {
    bench.list([], [STARTED], [FINISHED]);
    const mine = new Error('mine');
    const { error, run } = await bench.run({}, () => Promise.reject(mine));
    expect(error).toBe(mine);
    expect(run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready', released: 'reused' });
  });

  it('records nothing unless it is told to', async () => {
    const { asked } = await bench.run({ replays: 'list' });
    expect(asked).toEqual(['GET replays', 'GET replays', 'POST release']);
  });
});

describe('a recording that does not start', () => {
  it.each(REFUSALS)('harms nothing after %s, and the event says why', async (_what, answer) => {
    bench.service.script('start-replay', answer);
    const recorded = await bench.run();
    expectUnharmed(recorded);
    expect(typesOf(recorded)).toEqual(['recording-unavailable', 'replays']);
    expect(recorded.run).toMatchObject({ replays: [], replayStatus: 'unavailable' });
    expect(recorded.run!.cleanupErrors).toHaveLength(1);
    expect(recorded.events).toContainEqual(
      expect.objectContaining({
        type: 'recording-unavailable',
        sessionId: SESSION_ID,
        error: recorded.run!.cleanupErrors[0],
      }),
    );
    expect(bench.service.of('stop-replay')).toEqual([]);
  });

  it('still shows what the service recorded by itself', async () => {
    bench.service.script('start-replay', { status: 403 });
    bench.list([EARLIER], [EARLIER, FINISHED]);
    expect((await bench.run()).run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready' });
  });

  it('does not delay the callback, and is waited for at its end', async () => {
    let isCalled = false;
    bench.service.script('start-replay', async (response) => {
      await until(() => isCalled);
      setTimeout(() => reply(response, { status: 201, json: STARTED }), 200);
    });
    bench.list([], [FINISHED]);
    const recorded = await bench.run({}, () => {
      isCalled = true;
      return 'value';
    });
    expectUnharmed(recorded);
    expect(typesOf(recorded)).toEqual(['recording-started', 'recording-stopped', 'replays']);
    expect(recorded.run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready' });
  });

  it('is given up at replaysTimeout when the service never answers, and the browser is given back', async () => {
    bench.service.script('start-replay', hang);
    const recorded = await bench.run({ replaysTimeout: 300 });
    expectUnharmed(recorded);
    expect(typesOf(recorded)).toEqual(['recording-unavailable', 'replays']);
    expect(recorded.run).toMatchObject({ replays: [], replayStatus: 'unavailable' });
    expect(recorded.run!.cleanupErrors.map(String).join()).toContain('300 ms');
  });

  it('is no longer asked for once the connect has failed', async () => {
    bench.service.script('start-replay', hang);
    bench.service.script('acquire', { status: 200, json: session({ session_id: 'unreachable' }) });
    const { error } = await bench.run({ connectAttempts: 1 });
    expect(error).toMatchObject({ code: 'ERR_CONNECT' });
    // A request that were still under way would hold this up.
    await bench.pool.close();
    expect(bench.service.released).toEqual(['unreachable']);
  });
});

describe('a recording that does not stop', () => {
  it.each<[string, Answer]>([...REFUSALS.slice(0, 5), ['nothing', hang]])(
    'harms nothing after %s, and ends with the lease',
    async (what, answer) => {
      bench.service.script('stop-replay', answer);
      bench.list([], [STARTED], [FINISHED]);
      const recorded = await bench.run({ replaysTimeout: what === 'nothing' ? 300 : 10_000 });
      expectUnharmed(recorded);
      const stopped = recorded.events.find(({ type }) => type === 'recording-stopped');
      expect(stopped).toMatchObject({ replay: STARTED, error: expect.any(Error) });
      expect(recorded.run!.cleanupErrors).toContain((stopped as { error?: Error }).error);
      expect(recorded.run!.replays).toHaveLength(1);
      // What hangs takes the time in which the film was to be waited for.
      expect(recorded.run!.replayStatus).toBe(what === 'nothing' ? 'unavailable' : 'ready');
    },
  );

  it('says so when the service gave it no id to stop it by', async () => {
    bench.service.script('start-replay', {
      status: 201,
      json: { replay_id: null, replay_view_url: 'https://x/1' },
    });
    const recorded = await bench.run({ replaysTimeout: 300 });
    expectUnharmed(recorded);
    expect(recorded.run).toMatchObject({
      replays: [{ replay_view_url: 'https://x/1' }],
      replayStatus: 'pending',
    });
    expect(recorded.run!.cleanupErrors.map(String).join()).toContain('no replay_id');
  });
});

describe('a list that fails', () => {
  it.each(REFUSALS.filter(([what]) => what !== 'no object'))(
    'before the release leaves the link that the start told: %s',
    async (_what, answer) => {
      bench.list([], answer, [FINISHED]);
      const recorded = await bench.run();
      expectUnharmed(recorded);
      expect(recorded.run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready' });
      expect(recorded.run!.cleanupErrors).toHaveLength(1);
    },
  );

  it('at the start claims no recording but our own', async () => {
    bench.list({ status: 500 }, [EARLIER, FINISHED]);
    const { run } = await bench.run({ replaysTimeout: 400 });
    expect(run!.replays).toMatchObject([{ replay_id: 'replay-1' }]);
  });

  it('after the release ends the wait where no later try would help, and keeps what is known', async () => {
    bench.list([], [STARTED], { status: 404 }, [FINISHED]);
    const recorded = await bench.run();
    expectUnharmed(recorded);
    expect(recorded.run).toMatchObject({ replays: [STARTED], replayStatus: 'pending' });
    expect(recorded.run!.cleanupErrors).toMatchObject([{ status: 404 }]);
  });

  it.each<[string, Answer]>([
    ['500', { status: 500 }],
    ['a reset', reset],
  ])('after the release is asked for again: %s', async (_what, answer) => {
    bench.list([], [STARTED], answer, [FINISHED]);
    expect((await bench.run()).run).toMatchObject({
      replays: [FINISHED],
      replayStatus: 'ready',
      cleanupErrors: [],
    });
  });
});
