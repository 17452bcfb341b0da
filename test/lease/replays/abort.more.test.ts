import { expect, it } from 'vitest';
import { hang, until } from '../../service/support.js';
import { useCollected } from '../../support/collected.js';
import type { Answer, Route } from '../../support/fake-service.js';
import { LONG, watchTimeouts } from '../support.js';
import { useRecordingBench } from './support.js';

useCollected();
const bench = useRecordingBench();

const UNFINISHED: Answer = { status: 200, json: [{ replay_id: 'replay-1' }] };

it.each<[string, Route, number, Answer[]]>([
  ['the recording starts', 'start-replay', 1, [hang]],
  ['the recording stops', 'stop-replay', 1, [hang]],
  ['the recordings are listed', 'replays', 2, [{ status: 200, json: [] }, hang]],
  ['the browser is released', 'release', 1, [{ status: 204, delay: 300 }]],
  ['the run waits for the video', 'replays', 4, [{ status: 200, json: [] }, UNFINISHED]],
  ['the video is requested', 'replays', 3, [{ status: 200, json: [] }, UNFINISHED, hang]],
])(
  'rejects with the reason and releases the browser when the abort comes while %s',
  async (_when, route, count, answers) => {
    bench.service.script('replays', UNFINISHED);
    bench.service.script(route, ...answers);
    const endTimeout = watchTimeouts();
    const caller = new AbortController();
    const reason = new Error('mine');
    const running = bench.run({ signal: caller.signal, replaysTimeout: LONG });
    await until(() => bench.service.of(route).length === count);
    const abortedAt = performance.now();
    caller.abort(reason);
    const { error } = await running;
    expect(error).toBe(reason);
    // One second of grace after an abort; the rest is for a busy machine.
    expect(performance.now() - abortedAt).toBeLessThan(15_000);
    // The steps of a recording continue until then.
    endTimeout();
    await bench.pool.close();
    expect(bench.service.released).toEqual(['session-1']);
  },
);

it('sends no request after the release if the signal has aborted', async () => {
  bench.service.script('replays', UNFINISHED);
  const caller = new AbortController();
  await bench.run({ signal: caller.signal }, () => {
    caller.abort();
    return new Promise(() => {});
  });
  await bench.pool.close();
  expect(bench.asked.at(-1)).toBe('POST release');
});
