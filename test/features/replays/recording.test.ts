import { describe, expect, it } from 'vitest';
import type { RunOptions } from '../../../src/index.js';
import { until } from '../../support/played-browser.js';
import { hang, reset } from '../../pool/support.js';
import { expectNoSecrets } from '../../support/collected.js';
import {
  JWT,
  session,
  TOKEN,
  type Answer,
  type Route,
  type SeenRequest,
} from '../../support/fake-service.js';
import { PlayedLease } from '../../support/played-lease.js';
import { after, answerLater, LONG, useClock, watchTimeouts } from '../../lease/support.js';
import { useFastClock } from '../../support/fake-clock.js';

useFastClock();

const STARTED = { replay_id: 'replay-1', started_at: '2026-01-02T03:04:05Z' };
const FINISHED = {
  ...STARTED,
  finished_at: '2026-01-02T03:05:05Z',
  replay_view_url: 'https://x/1?jwt=shown',
};
const EARLIER = { replay_id: 'earlier', finished_at: '2026-01-01T00:00:00Z' };
const LATER = { replay_id: 'later', started_at: '2026-01-02T03:05:06Z' };

/** A list is requested three times. */
const LASTING = (answer: Answer): Answer[] => [answer, answer, answer];

const REFUSALS: [string, Answer][] = [
  ['403', { status: 403, json: { code: 'plan', message: `not for ${TOKEN}` } }],
  ['404', { status: 404, text: 'no such path' }],
  ['500', { status: 500, text: `oops ${JWT}` }],
  ['a reset', reset],
  ['a page', { status: 200, text: '<html>', headers: { 'content-type': 'text/html' } }],
];

/** Otherwise this process records what the service refuses. */
const BY_SERVICE = { by: 'service' } as const;

type Scripts = Partial<Record<Route, (Answer | object[])[]>>;

async function start(scripts: Scripts): Promise<PlayedLease> {
  const played = await PlayedLease.start();
  const json = played.session({ cdp_ws_url: `${played.browser.url}?jwt=${JWT}` });
  for (const [route, answers] of Object.entries({ acquire: [{ status: 200, json }], ...scripts })) {
    // A list of recordings stands for a response with this list.
    const all = answers.map((one) => (Array.isArray(one) ? { status: 200, json: one } : one));
    played.service.script(route as Route, ...all);
  }
  return played;
}

/** The requests in order, without the acquire request. */
const askedOf = ({ service }: PlayedLease) =>
  service.requests.map(({ method, path }) => `${method} ${path.split('/').at(-1)}`).slice(1);

/** A recorded call, which ends as well as one without a recording. */
async function record(scripts: Scripts, options: RunOptions = {}, fn?: () => unknown) {
  await using played = await start(scripts);
  const settings: RunOptions = {
    replays: 'record',
    replaysTimeout: 60_000,
    releaseTimeout: 60_000,
    ...options,
    recording: { ...BY_SERVICE, ...options.recording },
  };
  const { value, run, error } = await played.run(fn, settings);
  expectNoSecrets(run, error, ...played.events);
  expect({ value, error }).toEqual({ value: 'value', error: undefined });
  expect(run).toMatchObject({ released: 'reused' });
  const types = played.events.map(({ type }) => type).filter((type) => /record|replays/.test(type));
  return { run: run!, played, asked: askedOf(played), types };
}

describe.concurrent('a recording', () => {
  it('starts after the lease and stops before the release, and the run then waits for the video', async () => {
    const replays = [[EARLIER], [EARLIER, STARTED], [STARTED, LATER], [FINISHED, LATER]];
    const { run, asked, types } = await record({ replays });
    expect(run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready', cleanupErrors: [] });
    expect(asked.slice(0, 2).toSorted()).toEqual(['GET replays', 'POST replays']);
    const rest = ['POST stop', 'GET replays', 'POST release', 'GET replays', 'GET replays'];
    expect(asked.slice(2)).toEqual(rest);
    expect(types).toEqual(['recording-started', 'recording-stopped', 'replays', 'replays']);
    expect(run.timings.replays).toBeTypeOf('number');
  });

  it('sends frame rate and maximum duration in the units of the service, and may be written early', async () => {
    const recording = { frameRate: 12, maxDuration: 90_500 };
    const { run, asked, played } = await record({ replays: [[], [FINISHED]] }, { recording });
    expect(run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready' });
    const [{ body }] = played.service.of('start-replay') as [SeenRequest];
    expect(body).toEqual({ framerate: 12, max_duration_in_seconds: 91 });
    const [{ path }] = played.service.of('stop-replay') as [SeenRequest];
    expect(path).toBe('/browsers/session-1/replays/replay-1/stop');
    expect(asked.at(-1)).toBe('POST release');
  });

  it.each<[string, (Answer | object[])[]]>([
    ['has a null finished_at', [[], [{ ...STARTED, finished_at: null }], [FINISHED]]],
    [
      'is in the first list',
      [
        [EARLIER, STARTED],
        [EARLIER, FINISHED],
      ],
    ],
    ['is listed after one error', [{ status: 500 }, [EARLIER], [EARLIER, FINISHED]]],
    ['is listed after an error that lasts', [...LASTING({ status: 500 }), [EARLIER], [EARLIER, FINISHED]]],
    ['is listed again after a 500', [[], [STARTED], { status: 500 }, [FINISHED]]],
    ['is listed again after a reset', [[], [STARTED], reset, [FINISHED]]],
    ...REFUSALS.map(([what, answer]): [string, (Answer | object[])[]] => [
      `cannot be listed before the release: ${what}`,
      [[], ...(what.startsWith('4') ? [answer] : LASTING(answer)), [FINISHED]],
    ]),
  ])('is recognized if it %s', async (what, replays) => {
    const { run } = await record({ replays });
    expect(run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready' });
    expect(run.cleanupErrors).toHaveLength(/that lasts|cannot/.test(what) ? 1 : 0);
  });

  it('is not awaited any longer after a permanent error', async () => {
    const { run } = await record({ replays: [[], [STARTED], { status: 404 }, [FINISHED]] });
    expect(run).toMatchObject({ replays: [STARTED], replayStatus: 'pending' });
    expect(run.cleanupErrors).toMatchObject([{ status: 404 }]);
  });
});

describe.concurrent('a recording that does not start', () => {
  it.each<[string, Answer]>([...REFUSALS, ['no object', { status: 201, json: ['replay-1'] }]])(
    'does not fail the run after %s, and its event has the reason',
    async (_what, answer) => {
      const { run, played, types } = await record({ 'start-replay': [answer], replays: [[EARLIER]] });
      expect(types).toEqual(['recording-unavailable', 'replays']);
      expect(run).toMatchObject({ replays: [], replayStatus: 'unavailable' });
      expect(run.cleanupErrors).toHaveLength(1);
      const [error] = run.cleanupErrors;
      expect(played.told('recording-unavailable')).toMatchObject([{ sessionId: 'session-1', error }]);
      expect(played.service.of('stop-replay')).toEqual([]);
    },
  );

  it('leaves the recordings that the service made on its own', async () => {
    const replays = [[EARLIER], [EARLIER, FINISHED]];
    const { run } = await record({ 'start-replay': [{ status: 403 }], replays });
    expect(run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready' });
  });

  it('does not delay the callback, and is awaited after it', async () => {
    const { late, settle } = answerLater({ status: 201, json: STARTED, delay: 100 });
    const callback = () => {
      settle();
      return 'value';
    };
    const scripts = { 'start-replay': [late], replays: [[], [FINISHED]] };
    const { run, types } = await record(scripts, {}, callback);
    expect(run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready' });
    expect(types).toEqual(['recording-started', 'recording-stopped', 'replays']);
  });

  it('ends at replaysTimeout if the service never answers', async () => {
    const { run, types } = await record({ 'start-replay': [hang] }, { replaysTimeout: 200 });
    expect(types).toEqual(['recording-unavailable', 'replays']);
    expect(run).toMatchObject({ replays: [], replayStatus: 'unavailable' });
    expect(run.cleanupErrors.map(String).join()).toContain('200 ms');
  });

  it('is aborted when the connect fails', async () => {
    const acquire = [{ status: 200, json: session() }];
    await using played = await start({ 'start-replay': [hang], acquire });
    const { error } = await played.run(undefined, {
      replays: 'record',
      recording: BY_SERVICE,
      connectAttempts: 1,
    });
    expect(error).toMatchObject({ code: 'ERR_CONNECT' });
    // A pending request would delay this.
    await played.pool.close();
    expect(played.service.released).toEqual(['session-1']);
  });
});

// The tests below end timeouts of the whole process, so they run one after the other.
it('a recording that no list contains is the one of the start response', async () => {
  const endTimeout = watchTimeouts();
  const replays = [[], [], after(endTimeout, { status: 200, json: [] })];
  const { run } = await record({ replays }, { replaysTimeout: LONG });
  expect(run).toMatchObject({ replays: [STARTED], replayStatus: 'pending' });
});

it('a recording whose video is never written is returned with its link, and listed less and less often', async () => {
  const endTimeout = watchTimeouts();
  const replays = [[], [STARTED], [STARTED], [STARTED], after(endTimeout, { status: 200, json: [STARTED] })];
  const { run, played } = await record({ replays }, { replaysTimeout: LONG });
  expect(run).toMatchObject({ replays: [STARTED], replayStatus: 'pending', cleanupErrors: [] });
  const times = played.service.of('replays').map(({ at }) => at);
  // The pauses grow from 100 ms by half (a tenth of that with the fast clock), or are longer on a busy machine.
  expect(times[3]! - times[2]!).toBeGreaterThan(14);
  expect(times[4]! - times[3]!).toBeGreaterThan(21);
});

it.each([...REFUSALS.slice(0, 4), ['nothing', hang] as const])(
  'a recording that does not stop does not fail the run after %s, and ends with the lease',
  async (_what, answer) => {
    const [endTimeout, advance] = [watchTimeouts(), useClock()];
    const hangUntilTimeout = after(() => (advance(LONG), endTimeout()), hang);
    const stop = answer === hang ? hangUntilTimeout : answer;
    const scripts = { 'stop-replay': [stop], replays: [[], [STARTED], [FINISHED]] };
    const { run, played } = await record(scripts, { replaysTimeout: LONG });
    const [stopped] = played.told('recording-stopped');
    expect(stopped).toMatchObject({ replay: STARTED, error: expect.any(Error) as Error });
    expect(run.cleanupErrors).toContain(stopped!.error);
    expect(run.replays).toHaveLength(1);
    // A request that hangs uses up the time for the video.
    expect(run.replayStatus).toBe(answer === hang ? 'unavailable' : 'ready');
  },
);

it('a recording without an id cannot be stopped, which is reported', async () => {
  const endTimeout = watchTimeouts();
  const json = { replay_id: null, replay_view_url: 'https://x/1' };
  const replays = [[], [], after(endTimeout, { status: 200, json: [] })];
  const scripts = { 'start-replay': [{ status: 201, json }], replays };
  const { run } = await record(scripts, { replaysTimeout: LONG });
  expect(run).toMatchObject({ replays: [{ replay_view_url: 'https://x/1' }], replayStatus: 'pending' });
  expect(run.cleanupErrors.map(String).join()).toContain('returned no id');
});

it.each<[string, Route, number, (Answer | object[])[]]>([
  ['the recording starts', 'start-replay', 1, [hang]],
  ['the recording stops', 'stop-replay', 1, [hang]],
  ['the recordings are listed', 'replays', 2, [[], hang]],
  ['the run waits for the video', 'replays', 4, [[], [STARTED]]],
  ['the video is requested', 'replays', 3, [[], [STARTED], hang]],
])(
  'an abort while %s rejects with the reason, and releases the browser',
  async (_when, route, count, answers) => {
    await using played = await start({ replays: [[STARTED]], [route]: answers });
    const endTimeout = watchTimeouts();
    const caller = new AbortController();
    const when = { replaysTimeout: LONG, signal: caller.signal };
    const options = { replays: 'record', recording: BY_SERVICE, ...when } as const;
    const running = played.run(undefined, options);
    await until(() => played.service.of(route).length === count);
    caller.abort('mine');
    // Also a recording that the service neither starts nor stops ends with its timeout.
    endTimeout();
    expect((await running).error).toBe('mine');
    await played.pool.close();
    expect(played.service.released).toEqual(['session-1']);
  },
);

it.each<[string, (played: PlayedLease) => unknown, RunOptions, string]>([
  ['was lost', ({ requests }) => requests[0]!.socket.cut('dropped'), {}, 'ERR_BROWSER_LOST'],
  ['was used beyond the timeout', () => {}, { timeout: 100 }, 'ERR_CALLBACK_TIMEOUT'],
])('a recording of a browser that %s is stopped before the release, and returned', async (...row) => {
  const [, lose, options, code] = row;
  await using played = await start({ replays: [[], [FINISHED]] });
  const callback = () => {
    lose(played);
    return new Promise(() => {});
  };
  const { error, run } = await played.run(callback, { replays: 'record', recording: BY_SERVICE, ...options });
  expect(error).toMatchObject({ code });
  expect(run).toMatchObject({ replays: [FINISHED], replayStatus: 'ready', released: 'destroyed' });
  const posts = askedOf(played).filter((asked) => asked.startsWith('POST'));
  expect(posts).toEqual(['POST replays', 'POST stop', 'POST release']);
});

it('an abort in the callback ends the requests about the recording with the release', async () => {
  await using played = await start({ replays: [[STARTED]] });
  const caller = new AbortController();
  const callback = () => {
    caller.abort('mine');
    return new Promise(() => {});
  };
  await played.run(callback, { replays: 'record', recording: BY_SERVICE, signal: caller.signal });
  await played.pool.close();
  expect(askedOf(played).at(-1)).toBe('POST release');
});
