import { expect, it } from 'vitest';
import { PlayedLease } from '../support/played-lease.js';
import { variablesOf } from '../support/program.js';
import { start } from './support.js';

const LINK = 'https://replays.test/view?jwt=signed&replay_id=r1';

it('an error of a run that ends the process is printed with the link of the replay, and is unchanged', async () => {
  await using played = await PlayedLease.start();
  const { service } = played;
  // The recording that the service started by itself when it leased the browser.
  const replay = { replay_id: 'r1', started_at: '2099-01-01T00:00:00Z', replay_view_url: LINK };
  service.script('replays', { status: 200, json: [replay] });
  const ended = await Promise.all(
    ['thrown', 'unhandled', 'wrapped', 'caught'].map(async (way) => {
      const { code, stderr } = await start('uncaught', [way], variablesOf(service.options)).ended;
      const links = stderr.split('\n').filter((line) => line.startsWith('Replay'));
      return { way, code, links, error: /^Error: (.*)$/m.exec(stderr)?.[1] };
    }),
  );
  const links = [`Replay of the failed run: ${LINK}`];
  expect(ended).toEqual([
    { way: 'thrown', code: 1, links, error: 'of the callback' },
    { way: 'unhandled', code: 1, links, error: 'of the callback' },
    { way: 'wrapped', code: 1, links, error: 'Checkout failed' },
    { way: 'caught', code: 0, links: [], error: undefined },
  ]);
});
