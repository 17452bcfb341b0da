import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { hang, reset } from '../../pool/support.js';
import { reply, type Answer } from '../../support/fake-service.js';
import { PlayedLease } from '../../support/played-lease.js';
import { useFastClock } from '../../support/fake-clock.js';

useFastClock();

const earlier = { replay_id: 'earlier', finished_at: '2026-01-01T00:00:00Z', replay_view_url: 'https://x/1' };
const ours = {
  replay_id: 'ours',
  finished_at: '2026-01-02T00:00:00Z',
  replay_view_url: 'https://x/2?jwt=shown',
};

let played: PlayedLease;

beforeEach(async () => {
  const started = await PlayedLease.start();
  played = started;
  // Tests that run at the same time replace the variable.
  return () => started[Symbol.asyncDispose]();
});

const list = (...lists: unknown[]) =>
  played.service.script('replays', ...lists.map((json): Answer => ({ status: 200, json })));

it("returns the complete links of this lease's recordings, and none of earlier leases", async () => {
  list([earlier], [earlier, ours]);
  const { run } = await played.run();
  expect(run).toMatchObject({ replayStatus: 'ready', cleanupErrors: [] });
  expect(run!.replays).toEqual([{ ...ours, access: 'public' }]);
  const told = played.told('replays');
  expect(told).toMatchObject([{ sessionId: 'session-1', replays: [ours], status: 'ready' }]);
  expect(told[0]).not.toHaveProperty('error');
  // Before the release, so that the list contains nothing of the next lease.
  const order = played.service.requests.map(({ method, path }) => `${method} ${path.split('/').at(-1)}`);
  expect(order).toEqual(['POST acquire', 'GET replays', 'GET replays', 'POST release']);
});

it('recognizes its recordings even if the callback ended before the first list was answered', async () => {
  const lists = [[earlier], [earlier, ours]];
  const answer: Answer = (response) => reply(response, { status: 200, json: lists.shift() });
  // The first list takes longer than the whole run.
  played.service.script('replays', async (...asked) => sleep(200).then(() => answer(...asked)), answer);
  expect((await played.run()).run).toMatchObject({ replays: [ours], replayStatus: 'ready' });
});

it('returns the recording that the service started by itself, also beside the one of the option replays', async () => {
  const running = { replay_id: 'own', started_at: new Date(Date.now() + 60).toISOString() };
  const started = { replay_id: 'replay-1', started_at: new Date(Date.now() + 80).toISOString() };
  // The recording of the option may have started before the first list.
  list([earlier, running, started]);
  const { run } = await played.run(undefined, { replays: 'record', replaysTimeout: 10_000 });
  expect(run!.replays.map(({ replay_id }) => replay_id)).toEqual(['own', 'replay-1']);
});

it('does not return a recording of the lease before that was still being written in the first list', async () => {
  const now = new Date().toISOString();
  const before = { replay_id: 'before', started_at: now };
  list([before], [{ ...before, finished_at: now }, ours]);
  expect((await played.run()).run!.replays).toMatchObject([ours]);
});

it.each<[string, unknown[], number]>([
  ['none', [earlier], 0],
  ['pending', [{ replay_id: 'ours', started_at: null, finished_at: null }, earlier], 1],
  ['pending', [ours, { replay_id: 'more' }], 2],
  ['ready', [{ replay_view_url: 'https://x/3', finished_at: 'now' }], 1],
])('has the status %s for the list %j', async (replayStatus, second, count) => {
  list([earlier], second);
  const { run } = await played.run();
  expect([run!.replayStatus, run!.replays.length]).toEqual([replayStatus, count]);
});

describe.concurrent('a list that is invalid', () => {
  const valid: Answer = { status: 200, json: [earlier, ours] };

  it.each<[string, Answer, boolean]>([
    ['404', { status: 404, json: { code: 'not_found', message: 'gone' } }, false],
    ['500', { status: 500, text: 'oops' }, true],
    ['no list', { status: 200, json: { replays: [] } }, true],
    ['no JSON', { status: 200, text: '<html>' }, true],
    ['a reset', reset, true],
    ['nothing', hang, false],
  ])('does not fail the run, and returns nothing of others: %s', async (_what, answer, mayPass) => {
    const failures = Array.from({ length: mayPass ? 3 : 1 }, () => answer);
    const check = async (answers: Answer[]) => {
      await using own = await PlayedLease.start();
      own.service.script('replays', ...answers);
      const replaysTimeout = answer === hang ? 5000 : 60_000;
      const { value, run } = await own.run(undefined, { replaysTimeout, releaseTimeout: 60_000 });
      expect(value).toBe('value');
      expect(run).toMatchObject({ replays: [], replayStatus: 'unavailable', released: 'reused' });
      expect(run!.cleanupErrors).toHaveLength(1);
      const [error] = run!.cleanupErrors;
      expect(own.told('replays').at(-1)).toMatchObject({ status: 'unavailable', error });
      if (answer === hang) expect(error!.message).toMatch(/within 5 s \(option replaysTimeout\)/);
    };
    await Promise.all([check([...failures, valid]), check([valid, answer])]);
  });

  it('is requested again, up to twice, after a fault that may pass', async () => {
    await using own = await PlayedLease.start();
    const first: Answer = { status: 200, json: [earlier] };
    own.service.script('replays', { status: 503 }, first, reset, { status: 500 }, valid);
    const { run } = await own.run(undefined, { replaysTimeout: 60_000 });
    expect(run).toMatchObject({ replays: [ours], replayStatus: 'ready', cleanupErrors: [] });
  });
});

it('returns the recording that the service began before its response to the acquire request', async () => {
  const date = 'Fri, 02 Jan 2026 03:04:05 GMT';
  played.service.script('acquire', { status: 200, json: played.session(), headers: { date } });
  const left = { replay_id: 'left', started_at: '2026-01-02T03:04:00Z' };
  const other = { replay_id: 'other', started_at: '2026-01-02T03:04:04.3Z', finished_at: 'soon' };
  const own = { replay_id: 'own', started_at: '2026-01-02T03:04:04.5Z' };
  list([left, other, own], [left, other, { ...own, finished_at: 'now' }]);
  expect((await played.run()).run).toMatchObject({ replays: [{ replay_id: 'own' }], replayStatus: 'ready' });
});

it('returns recordings that began and ended in the lease before a late first list', async () => {
  const date = 'Fri, 02 Jan 2026 03:04:05 GMT';
  played.service.script('acquire', { status: 200, json: played.session(), headers: { date } });
  const times = (start: string, end: string) => ({
    started_at: `2026-01-02T${start}Z`,
    finished_at: `2026-01-02T${end}Z`,
  });
  const left = { replay_id: 'left', ...times('03:04:01', '03:04:05') };
  const begun = [6, 7].map((second) => ({
    replay_id: `ours-${second}`,
    ...times(`03:04:0${second}.1`, '03:04:09'),
  }));
  list([left, ...begun]);
  expect((await played.run()).run).toMatchObject({ replays: begun, replayStatus: 'ready' });
});

it("requests and emits nothing with replays: 'off'", async () => {
  const { run } = await played.run(undefined, { replays: 'off' });
  expect(run).toMatchObject({ replays: [], replayStatus: 'off' });
  expect(played.service.of('replays')).toEqual([]);
  expect(played.told('replays')).toEqual([]);
});
