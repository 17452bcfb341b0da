import { expect, it } from 'vitest';
import { PlayedLease } from '../support/played-lease.js';
import { variablesOf } from '../support/program.js';
import { start } from './support.js';

it('a lease that nobody can release any more is reported once on stderr, with what to do', async () => {
  await using played = await PlayedLease.start();
  const [idle, busy] = ['idle', 'busy'].map((how) =>
    start('forgotten', [how], variablesOf(played.service.options)),
  );
  await idle!.prints(/leased/);
  await busy!.prints(/leased/);
  await idle!.prints(/Nothing is left to do, but the browser of session session-1.*release\(\)/);
  expect(idle!.stderr.match(/Nothing is left to do/g)).toHaveLength(1);
  expect(busy!.stderr).toBe('');
  for (const program of [idle!, busy!]) await program.end('SIGTERM');
});
