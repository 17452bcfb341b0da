import { expect, it } from 'vitest';
import { FakeService } from '../support/fake-service.js';
import type { Ended } from '../support/program.js';
import { runHere } from './support.js';

/** Runs the command at a service with these recordings. */
async function run(recordings: object[], ...flags: string[]): Promise<Ended> {
  await using service = await FakeService.start();
  service.script('replays', { status: 200, json: recordings });
  return await runHere(['replays', 'session-1', ...flags], service.options);
}

const LINK = 'https://replays.test/view?jwt=eyJhbGciOi.eyJzdWIi.c2ln&replay_id=r1';
const REPLAY = {
  replay_id: 'r1',
  started_at: '2026-01-01T00:00:00Z',
  finished_at: '2026-01-01T00:01:00Z',
  replay_view_url: LINK,
};

it('lists the recordings of a session, with their whole links', async () => {
  const { code, stdout, stderr } = await run([REPLAY, { replay_id: 'r2' }, {}]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['replay', 'started', 'finished', 'access', 'link'],
    ['r1', '2026-01-01T00:00:00Z', '2026-01-01T00:01:00Z', 'public', LINK],
    ['r2', '-', 'not yet', '-', '-'],
    ['-', '-', 'not yet', '-', '-'],
    [''],
  ]);
});

it('prints the list with --json, unknown fields included', async () => {
  const list = [{ ...REPLAY, colour: 'red' }];
  expect(JSON.parse((await run(list, '--json')).stdout)).toEqual([{ ...list[0], access: 'public' }]);
});

it('prints nothing on stdout for a session without recordings, and an empty list with --json', async () => {
  const { code, stdout, stderr } = await run([]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
  expect(stderr).toContain('Session session-1 has no recordings.');
  expect(await run([], '--json')).toEqual({ code: 0, stdout: '[]\n', stderr: '' });
});
