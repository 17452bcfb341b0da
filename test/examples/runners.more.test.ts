import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { JWT } from '../support/fake-service.js';
import { FaultBench } from '../support/fault-bench.js';
import { useLocalPool } from '../support/local.js';
import { variablesOf } from '../support/program.js';
import { EXAMPLE_TIMEOUT, runCommand, startExample } from './support.js';

// As browsers in the cloud, they do not reach the servers of this machine by the name localhost.
const used = useLocalPool({
  pools: [{ name: 'default', size: 2 }],
  args: ['--host-resolver-rules=MAP localhost 127.0.0.1:9'],
});

it.each([
  ['jest', /Tests: +1 failed, 1 passed/],
  ['node-test', /pass 1\n.*fail 1/],
])('%s: leases one browser for the file, and prints the replay of the failed test', async (name, summary) => {
  await using bench = await FaultBench.start(used.local);
  const link = `https://view.example/replay?jwt=${JWT}&replay_id=r-1`;
  const replay = { replay_id: 'r-1', replay_view_url: link };
  bench.service.script('replays', { status: 200, json: [] }, { status: 200, json: [replay] });
  const { code, stdout, stderr } = await startExample(`${name}/main`, bench.service.options).ended;
  const output = stdout + stderr;
  expect(code).toBe(0);
  expect(output).toMatch(summary);
  expect(output).toContain(`Replay of "the shop sells flowers": ${link}`);
  expect(output).not.toContain('Replay of "the shop has a name"');
  expect(bench.granted.size).toBe(1);
  expect(bench.service.released).toEqual([...bench.granted]);
});

/** The command for a person, which starts a local pool, and the one for CI, with one browser for each worker. */
const COMMANDS = ['vitest', 'playwright-test', 'localhost'].map((suite) => {
  const readme = readFileSync(`examples/${suite}/README.md`, 'utf8');
  return /```sh\n([^`\n]+)\n([^`\n]+)\n```/.exec(readme)!.slice(1) as [local: string, service: string];
});

it.each(COMMANDS)(
  'runs on browsers of this machine: %s; and on a service: %s',
  async (local, service) => {
    await runCommand(local);
    const before = used.local.stats();
    await runCommand(service, variablesOf(used.local));
    const { granted, released, leased } = used.local.stats();
    expect(granted).toBeGreaterThan(before.granted);
    expect({ released, leased }).toEqual({ released: granted, leased: 0 });
  },
  EXAMPLE_TIMEOUT,
);
