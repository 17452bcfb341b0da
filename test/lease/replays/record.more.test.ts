import { describe, expect, it } from 'vitest';
import { hang, reset, until } from '../../service/support.js';
import { useCollected } from '../../support/collected.js';
import { JWT, reply, session, TOKEN, type Answer } from '../../support/fake-service.js';
import { LONG, useClock, watchTimeouts } from '../support.js';
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

/** A list during which `replaysTimeout`, which must be `LONG`, ends. */
function endTimeoutWith(json: object[]): Answer {
  const endTimeout = watchTimeouts();
  return (response) => {
    endTimeout();
    reply(response, { status: 200, json });
  };
}

describe('a recorded run', () => {
  it('starts the recording after the lease, stops it before the release, and then waits for the video', async () => {
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

  it('does not wait if the video is written before the release', async () => {
    bench.list([], [FINISHED]);
    const { asked, run } = await bench.run();
    expect(run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready' });
    expect(asked.at(-1)).toBe('POST release');
  });

  it('sends frame rate and maximum duration in the units of the service', async () => {
    bench.list([], [FINISHED]);
    await bench.run({ recording: { frameRate: 12, maxDuration: 90_500 } });
    expect(bench.service.of('start-replay')[0]!.body).toEqual({ framerate: 12, max_duration_in_seconds: 91 });
    expect(bench.service.of('stop-replay')[0]!.path).toBe(`/browsers/${SESSION_ID}/replays/replay-1/stop`);
  });

  it('releases the browser and returns the link if the video is never written', async () => {
    bench.list([], [STARTED]);
    const recorded = await bench.run({ replaysTimeout: 10_000 });
    expectUnharmed(recorded);
    expect(recorded.run).toMatchObject({ replays: [STARTED], replayStatus: 'pending', cleanupErrors: [] });
    // The pauses grow: without that, the lists would be about forty.
    expect(bench.service.of('replays').length).toBeLessThan(14);
  });

  it('keeps the link of the start response if the list does not contain the recording', async () => {
    bench.list([], [], endTimeoutWith([]));
    expect((await bench.run({ replaysTimeout: LONG })).run).toMatchObject({
      replays: [STARTED],
      replayStatus: 'pending',
    });
  });

  it('treats a null finished_at as missing', async () => {
    bench.list([], [{ ...STARTED, finished_at: null }], [FINISHED]);
    expect((await bench.run()).run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready' });
  });

  it('recognizes its recording even if it is in the first list', async () => {
    bench.list([EARLIER, STARTED], [EARLIER, FINISHED]);
    expect((await bench.run()).run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready' });
  });

  it('also waits for the video of a failed callback', async () => {
    bench.list([], [STARTED], [FINISHED]);
    const mine = new Error('mine');
    const { error, run } = await bench.run({}, () => Promise.reject(mine));
    expect(error).toBe(mine);
    expect(run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready', released: 'reused' });
  });

  it('records nothing by default', async () => {
    const { asked } = await bench.run({ replays: 'list' });
    expect(asked).toEqual(['GET replays', 'GET replays', 'POST release']);
  });
});

describe('a recording that does not start', () => {
  it.each(REFUSALS)('does not fail the run after %s, and its event has the reason', async (_what, answer) => {
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

  it('still lists recordings that the service made on its own', async () => {
    bench.service.script('start-replay', { status: 403 });
    bench.list([EARLIER], [EARLIER, FINISHED]);
    expect((await bench.run()).run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready' });
  });

  it('does not delay the callback, and is awaited after it', async () => {
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

  it('ends at replaysTimeout if the service never answers, and the browser is released', async () => {
    bench.service.script('start-replay', hang);
    const recorded = await bench.run({ replaysTimeout: 300 });
    expectUnharmed(recorded);
    expect(typesOf(recorded)).toEqual(['recording-unavailable', 'replays']);
    expect(recorded.run).toMatchObject({ replays: [], replayStatus: 'unavailable' });
    expect(recorded.run!.cleanupErrors.map(String).join()).toContain('300 ms');
  });

  it('is aborted when the connect fails', async () => {
    bench.service.script('start-replay', hang);
    bench.service.script('acquire', { status: 200, json: session({ session_id: 'unreachable' }) });
    const { error } = await bench.run({ connectAttempts: 1 });
    expect(error).toMatchObject({ code: 'ERR_CONNECT' });
    // A pending request would delay this.
    await bench.pool.close();
    expect(bench.service.released).toEqual(['unreachable']);
  });
});

describe('a recording that does not stop', () => {
  it.each<[string, Answer]>([...REFUSALS.slice(0, 5), ['nothing', hang]])(
    'does not fail the run after %s, and ends with the lease',
    async (what, answer) => {
      const [endTimeout, advance] = [watchTimeouts(), useClock()];
      const hangUntilTimeout = () => {
        advance(LONG);
        endTimeout();
      };
      bench.service.script('stop-replay', what === 'nothing' ? hangUntilTimeout : answer);
      bench.list([], [STARTED], [FINISHED]);
      const recorded = await bench.run({ replaysTimeout: LONG });
      expectUnharmed(recorded);
      const stopped = recorded.events.find(({ type }) => type === 'recording-stopped');
      expect(stopped).toMatchObject({ replay: STARTED, error: expect.any(Error) });
      expect(recorded.run!.cleanupErrors).toContain((stopped as { error?: Error }).error);
      expect(recorded.run!.replays).toHaveLength(1);
      // A request that hangs uses up the time for the video.
      expect(recorded.run!.replayStatus).toBe(what === 'nothing' ? 'unavailable' : 'ready');
    },
  );

  it('is reported if the service returned no id for it', async () => {
    bench.service.script('start-replay', {
      status: 201,
      json: { replay_id: null, replay_view_url: 'https://x/1' },
    });
    bench.list([], [], endTimeoutWith([]));
    const recorded = await bench.run({ replaysTimeout: LONG });
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
    'keeps the link of the start response if it fails before the release: %s',
    async (_what, answer) => {
      bench.list([], answer, [FINISHED]);
      const recorded = await bench.run();
      expectUnharmed(recorded);
      expect(recorded.run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready' });
      expect(recorded.run!.cleanupErrors).toHaveLength(1);
    },
  );

  it('returns only our own recording if it fails at the start', async () => {
    bench.list({ status: 500 }, [EARLIER, FINISHED]);
    const { run } = await bench.run();
    expect(run!.replays).toMatchObject([{ replay_id: 'replay-1' }]);
  });

  it('ends the wait for the video after a permanent error, and keeps the known recordings', async () => {
    bench.list([], [STARTED], { status: 404 }, [FINISHED]);
    const recorded = await bench.run();
    expectUnharmed(recorded);
    expect(recorded.run).toMatchObject({ replays: [STARTED], replayStatus: 'pending' });
    expect(recorded.run!.cleanupErrors).toMatchObject([{ status: 404 }]);
  });

  it.each<[string, Answer]>([
    ['500', { status: 500 }],
    ['a reset', reset],
  ])('is repeated after the release: %s', async (_what, answer) => {
    bench.list([], [STARTED], answer, [FINISHED]);
    expect((await bench.run()).run).toMatchObject({
      replays: [FINISHED],
      replayStatus: 'ready',
      cleanupErrors: [],
    });
  });
});
