import { randomInt } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Random } from '../../support/random.js';
import type { Way } from '../caller.js';
import type { Fault } from '../faults.js';
import { simulate, type Verdict } from '../simulate.js';
import type { Library } from '../world.js';
import { buildLibrary } from './build-library.js';
import { Failpoints, MODES, type Mode } from './failpoints.js';
import type { Failpoint } from './place-failpoints.js';

interface Scenario {
  name: string;
  seeds: readonly number[];
  ways: readonly Way[];
  rates?: Partial<Record<Fault, number>>;
}

/** Together they pass every await of the lease's path. */
const SCENARIOS: readonly Scenario[] = [
  { name: 'no fault', seeds: [1, 2], ways: ['run', 'lease', 'acquire'] },
  { name: 'a lease inside a lease', seeds: [1, 2], ways: ['nested', 'run'] },
  {
    name: 'an outage',
    seeds: [1, 2, 3, 7],
    ways: ['run', 'run', 'run', 'run'],
    rates: { 'http: 503': 0.5, 'http: refused': 0.2 },
  },
  { name: 'a service that asks to wait', seeds: [1, 2], ways: ['run', 'run'], rates: { 'http: 429': 0.5 } },
  {
    name: 'lost responses',
    seeds: [1, 2, 20, 30],
    ways: ['run', 'run'],
    rates: { 'http: reset after processing': 0.3 },
  },
  {
    name: 'unreachable browsers',
    seeds: [1, 2],
    ways: ['run', 'lease'],
    rates: { 'connect: throws': 0.6, 'upgrade: refused': 0.3 },
  },
  { name: 'an unresponsive page', seeds: [1, 2], ways: ['run'], rates: { 'connect: unresponsive page': 1 } },
  {
    name: 'a refused token',
    seeds: [1, 2],
    ways: ['run'],
    rates: { 'http: 401': 0.4, 'token: slow': 0.5 },
  },
  {
    name: 'aborts',
    seeds: [1, 2, 3],
    ways: ['run', 'lease', 'acquire'],
    rates: { 'caller: aborts': 1 },
  },
  {
    name: 'callbacks that fail',
    seeds: [1, 2],
    ways: ['run', 'run'],
    rates: { 'callback: throws': 0.5, 'socket: dropped': 0.5 },
  },
  {
    name: 'leases that outlive their connection',
    seeds: [1, 2, 3, 4, 5, 6, 8, 10],
    ways: ['agent', 'agent'],
    rates: { 'socket: dropped': 0.5, 'upgrade: refused': 0.1 },
  },
  {
    name: 'detached leases',
    seeds: [1, 2, 3, 4],
    ways: ['handover', 'handover', 'handover'],
    rates: { 'upgrade: refused': 0.3 },
  },
  {
    name: 'slow responses',
    seeds: [1, 2, 3],
    ways: ['run', 'run'],
    rates: { 'http: slow': 0.5 },
  },
  {
    name: 'slow releases',
    seeds: [1],
    ways: ['run', 'run'],
    rates: { 'release: temporarily unavailable': 0.5 },
  },
];

/** Modes that can't occur at an await, by the awaited expression, with the reason. */
const EXCLUDED: readonly { awaited: RegExp; modes: readonly Mode[]; why: string }[] = [
  {
    awaited:
      /dispatcher\.request\(|body as AsyncIterable|Socket\.open\(|openSocket\(|#enterQueue\(|#beforeRetry\(/,
    modes: ['hangs', 'is late'],
    why: 'it ends with its signal: the simulated one hangs until then, and other tests cover the real one',
  },
  {
    awaited: /body as AsyncIterable|Socket\.open\(|openSocket\(/,
    modes: ['throws after'],
    why: 'a chunk or a socket is either delivered or not',
  },
  { awaited: /connecting, ended/, modes: ['throws'], why: 'it has started before: it can only throw after' },
  { awaited: /service\.dispatcher\(\)/, modes: ['hangs', 'is late'], why: 'it only imports a module' },
  { awaited: /release\('leave'/, modes: ['hangs', 'is late'], why: 'it sends nothing' },
  {
    awaited: / connections$/,
    modes: ['throws', 'throws after', 'hangs', 'is late'],
    why: 'the simulated service has no connections',
  },
  { awaited: / sleep\(/, modes: ['hangs', 'is late'], why: 'a timer fires' },
  {
    awaited: / nextTurn\(/,
    modes: ['throws', 'throws after', 'hangs', 'is late'],
    why: 'the next turn of the event loop comes',
  },
  {
    awaited: /raceAbort\(work, grace| released$|allSettled\(this\.#work\)/,
    modes: ['throws', 'throws after', 'hangs', 'is late'],
    why: 'the work has started elsewhere, and fails there',
  },
];

/**
 * Awaits that no simulated lease reaches: sockets are simulated, the process does not end, no browser is started,
 * nothing is flushed or downloaded, the queue of calls stays short, and the simulated connector observes no pages.
 */
const ELSEWHERE =
  /^lease\/artifact|artifact-files\.js|prepareFolder\(|^service\/(fair-semaphore|service|local-service|endpoints|held-leases|download-replay)|download-replay\.js|onContent\(|openSingleEndpoint\(|^lease\/lease-browser.* (release\(\)$|lease\.replays)|browser-pool/;

/** Each run of the tests lets every await fail in another world of each scenario. */
const SEED = randomInt(1_000_000_000);

const random = new Random(SEED);
const failpoints = new Failpoints();
let build: Awaited<ReturnType<typeof buildLibrary>>;

beforeAll(async () => {
  build = await buildLibrary();
  failpoints.install();
});
afterAll(() => {
  failpoints.uninstall();
  build?.remove();
});

it('breaks no rule, whichever await of a lease fails, in every mode', async () => {
  const reached = await passAll();
  const points = new Set(reached.map(({ id }) => id));
  const broken: string[] = [];
  const modes = new Map<Mode, number>();
  for (const { scenario, id, passes } of reached) {
    const point = build.failpoints[id]!;
    for (const mode of MODES.filter((mode) => isPossible(point, mode))) {
      const { seed, pass } = random.pick(passes);
      const verdict = await run(scenario, seed, { id, mode, pass });
      if (!failpoints.struck) continue;
      modes.set(mode, (modes.get(mode) ?? 0) + 1);
      for (const violation of verdict.violations)
        broken.push(`${point.where} ${mode} (${scenario.name}, seed ${seed}, pass ${pass}): ${violation}`);
    }
  }
  const inner = [...points].filter((id) => !failpoints.outer.has(id)).length;
  const runs = [...modes].map(([mode, count]) => `${mode} ${count}`).join(', ');
  process.stdout.write(
    `failpoints with seed ${SEED}: ${build.failpoints.length} awaits, ${points.size} passed, ${inner} of them the innermost; ${runs}\n`,
  );
  expect(broken).toEqual([]);
  const missed = build.failpoints.filter(({ id, where }) => !points.has(id) && !ELSEWHERE.test(where));
  expect(missed).toEqual([]);
}, 900_000);

interface Passed {
  seed: number;
  pass: number;
}

/** An await that a scenario reaches, and where: in which worlds, the first or the second time. */
interface Reached {
  scenario: Scenario;
  id: number;
  passes: Passed[];
}

async function passAll(): Promise<Reached[]> {
  const reached: Reached[] = [];
  for (const scenario of SCENARIOS) {
    const byId = new Map<number, Passed[]>();
    for (const seed of scenario.seeds) {
      expect((await run(scenario, seed)).violations).toEqual([]);
      for (const [id, count] of failpoints.passes) {
        const passes = Array.from({ length: Math.min(count, 2) }, (_, index) => ({ seed, pass: index + 1 }));
        byId.set(id, [...(byId.get(id) ?? []), ...passes]);
      }
    }
    for (const [id, passes] of byId) reached.push({ scenario, id, passes });
  }
  return reached;
}

/** Work that consists of other awaits fails with these: it can only be delayed or aborted. */
function isPossible({ id, where }: Failpoint, mode: Mode): boolean {
  if (EXCLUDED.some(({ awaited, modes }) => awaited.test(where) && modes.includes(mode))) return false;
  return !failpoints.outer.has(id) || mode === 'is aborted' || mode === 'waits';
}

function run(
  { ways, rates = {} }: Scenario,
  seed: number,
  armed?: { id: number; mode: Mode; pass: number },
): Promise<Verdict> {
  const library: Library = build.library;
  return simulate(seed, {
    library,
    ways,
    rates: new Map(Object.entries(rates) as [Fault, number][]),
    beforeRun: ({ clock }, callers) =>
      failpoints.reset(
        armed && {
          ...armed,
          sleep: (milliseconds) => clock.sleep(milliseconds),
          abort: () => callers.forEach((caller) => caller.abort()),
        },
      ),
  });
}
