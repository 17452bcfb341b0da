import { expect, it } from 'vitest';
import { expectNoSecrets } from '../support/collected.js';
import { PlayedLease } from '../support/played-lease.js';
import { variablesOf } from '../support/program.js';
import { start } from './support.js';

/** What a program prints on stderr that fails in a callback. */
async function stderrOf(environment: Record<string, string>): Promise<string> {
  await using played = await PlayedLease.start();
  const program = start('failing', [], { ...variablesOf(played.service.options), ...environment });
  const { code, stderr } = await program.ended;
  expect(code).toBe(0);
  return stderr;
}

it.each(['pooled-browser', 'http2,pooled*'])(
  'prints each event of a call on one line of stderr, without secrets, with NODE_DEBUG=%s',
  async (value) => {
    const stderr = await stderrOf({ NODE_DEBUG: value });
    const lines = stderr.trim().split('\n');
    const types = lines.map(
      (line) => /^POOLED-BROWSER \d+: ([\w-]+) pool='test' /.exec(`${line} `)?.[1] ?? line,
    );
    expect(types).toEqual(
      expect.arrayContaining(['acquiring', 'acquired', 'connected', 'callback-ended', 'ended']),
    );
    expect(lines.at(-1)).toContain('ended');
    expect(types.filter((type) => !/^[\w-]+$/.test(type))).toEqual([]);
    expect(stderr).toContain('first line second line');
    expectNoSecrets(stderr);
  },
);

it.each<[string, Record<string, string>]>([
  ['without NODE_DEBUG', {}],
  ['with a NODE_DEBUG of something else', { NODE_DEBUG: 'timer' }],
])('prints no event %s', async (_when, environment) => {
  expect(await stderrOf(environment)).not.toContain('POOLED-BROWSER');
});
