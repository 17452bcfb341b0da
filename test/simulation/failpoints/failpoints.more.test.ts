import { randomInt } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Random } from '../../support/random.js';
import type { Way } from '../caller.js';
import type { Fault } from '../faults.js';
import { simulate, type Verdict } from '../simulate.js';
import type { Shape } from '../simulated-services.js';
import { buildLibrary } from './build-library.js';
import { Failpoints, MODES, type Mode } from './failpoints.js';
import type { Failpoint } from './place-failpoints.js';

/** Name, seeds of the worlds, callers, rates of the faults, and the service. */
type Scenario = [
  name: string,
  seeds: number[],
  ways: Way[],
  rates?: Partial<Record<Fault, number>>,
  shape?: Shape,
];

/** Together they pass every await of the lease's path. */
const SCENARIOS: readonly Scenario[] = [
  ['no fault', [1, 2], ['run', 'lease', 'acquire']],
  ['a lease inside a lease', [1, 2], ['nested', 'run']],
  ['an outage', [1, 2, 3, 7], ['run', 'run', 'run', 'run'], { 'http: 503': 0.5, 'http: refused': 0.2 }],
  ['a service that asks to wait', [1, 2], ['run', 'run'], { 'http: 429': 0.5 }],
  ['lost responses', [1, 2, 20, 30], ['run', 'run'], { 'http: reset after processing': 0.3 }],
  ['unreachable browsers', [1, 2], ['run', 'lease'], { 'connect: throws': 0.6, 'upgrade: refused': 0.3 }],
  ['an unresponsive page', [1, 2], ['run'], { 'connect: unresponsive page': 1 }],
  ['a refused token', [1, 2], ['run'], { 'http: 401': 0.4, 'token: slow': 0.5 }],
  ['aborts', [1, 2, 3], ['run', 'lease', 'acquire'], { 'caller: aborts': 1 }],
  ['callbacks that fail', [1, 2], ['run', 'run'], { 'callback: throws': 0.5, 'socket: dropped': 0.5 }],
  [
    'leases that outlive their connection',
    [1, 2, 3, 4, 5, 6, 8, 10],
    ['agent', 'agent'],
    { 'socket: dropped': 0.5, 'upgrade: refused': 0.1 },
  ],
  ['detached leases', [1, 2, 3, 4], ['handover', 'handover', 'handover'], { 'upgrade: refused': 0.3 }],
  ['slow responses', [1, 2, 3], ['run', 'run'], { 'http: slow': 0.5 }],
  [
    'connections that fail again',
    [1, 2, 3],
    ['agent', 'agent'],
    { 'socket: dropped': 1, 'connect: throws': 0.4 },
  ],
  ['a full pool', [1, 2], Array<Way>(9).fill('run'), { 'acquire: answered too early': 1 }],
  ['browsers that are not cleaned', [1, 2, 3], ['run', 'lease'], { 'browser: command hangs': 0.3 }],
  ['a browser without a service', [1, 2], ['run', 'run', 'lease'], {}, 'cdp'],
  [
    'a dirty browser without a service',
    [1, 2, 3, 4],
    ['run', 'run', 'lease', 'run'],
    { 'browser: command hangs': 0.3 },
    'cdp',
  ],
  ['a service that never waits', [1, 2], Array<Way>(9).fill('run'), {}, 'own'],
  ['slow releases', [1], ['run', 'run'], { 'release: temporarily unavailable': 0.5 }],
];

const NEVER_FAILS: readonly Mode[] = ['throws', 'throws after', 'hangs', 'is late'];
const NEVER_LATE: readonly Mode[] = ['hangs', 'is late'];

/** Modes that can't occur at an await, by the awaited expression. */
const EXCLUDED: readonly [RegExp, readonly Mode[]][] = [
  // They end with their signal: the simulated ones hang until then, and other tests cover the real ones.
  [
    /connections\.send\(|exposedNetwork\(|body as AsyncIterable|response\.ts.* response|Socket\.open\(|openSocket\(|trustedUrl\(|\.take\(|pauseBefore\(/,
    NEVER_LATE,
  ],
  // A chunk or a socket is either delivered or not.
  [/body as AsyncIterable|response\.ts.* response|Socket\.open\(|openSocket\(/, ['throws after']],
  // It has started before: it can only throw after.
  [/connecting, (ended|exposed)|raceAbort\(start,| result$/, ['throws']],
  // They have limits inside.
  [/#cleanFirst\(|prepareFolders\(|this\.observe\(|prepareToken\(/, NEVER_LATE],
  // Of a pool that closes, they are loaded already, or it has sent nothing.
  [/loadRequests\(\)/, ['throws', 'throws after']],
  // They import a module, send nothing, or wait for a timer.
  [/host\.open\(\)|load\w+\(\)| delay\(/, NEVER_LATE],
  // A simulated host has no connections. The next turn of the event loop comes, as does the end of a pause.
  [
    / opening$| opened\?\.connections\.close\(\)$| opened\?\.local\?\.close\(\)$| nextTurn\(| delay\((PROCESSING|Math)/,
    NEVER_FAILS,
  ],
  // It catches every failure, and its parts have limits.
  [/#collector\?\.collect\(/, NEVER_FAILS],
  // The work has started elsewhere, and fails there.
  [/raceAbort\(work, grace| releas(ed|ing)$|allSettled\(this\.#work\)|downloads\?\.settle\(/, NEVER_FAILS],
];

/**
 * Awaits that no simulated lease reaches: sockets are simulated, URLs are those of WebSockets, responses are not compressed,
 * the process does not end, no browser is started, nothing is flushed or downloaded, no hosts are exposed, no HTTP proxy and no
 * other program is used, no service leases by the connection, and the simulated connector observes no pages and needs no endpoint.
 */
const ELSEWHERE = new RegExp(
  [
    /^lease\/(artifact|downloads|prox)|artifact-files\.js|prepareFolder\(/,
    /^service\/(host|local-service|download-replay|browser-pool|connections?|http)\.|download-replay\.js|onContent\(/,
    /open(Single|Shared)Endpoint\(|exposed|openCdp\(|emporaryFolder\(|sendOnce\(|discover\(|fetch\(|cleanBrowser\(socket\.takeOver/,
    /^lease\/lease-browser.* (release\(\)$|lease\.replays|loadLease)|soFar\(|\.session\.release\(|unpack\(|node:zlib| open\(\)$/,
    // A service whose connection is the lease.
    /pauseAfterRefusal\(|untilRelease|lease\.#begin\(\)$/,
    /allSettled\(\[\.\.\.this\.#held|^service\/held-sessions.* delay\(|new Promise\(\(\) => \{\}\)/,
    // A token in the URL of a service without an acquire request; a connection opened ahead.
    /^service\/client.* this\.#inTime\(options, \(abort\) => this\.#currentToken|^service\/spare-connection.* opening$/,
  ]
    .map(({ source }) => source)
    .join('|'),
);

/** Each run of the tests lets every await fail in other worlds. */
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
  const passed = await passAll();
  const broken: string[] = [];
  const modes = new Map<Mode, number>();
  for (const [id, passes] of passed) {
    const point = build.failpoints[id]!;
    const possible = MODES.filter((mode) => isPossible(point, mode));
    for (const mode of [...possible, ...possible]) {
      const { scenario, seed, pass } = random.pick(passes);
      const verdict = await run(scenario, seed, { id, mode, pass });
      if (!failpoints.struck) continue;
      modes.set(mode, (modes.get(mode) ?? 0) + 1);
      for (const violation of verdict.violations)
        broken.push(`${point.where} ${mode} (${scenario[0]}, seed ${seed}, pass ${pass}): ${violation}`);
    }
  }
  const inner = [...passed.keys()].filter((id) => !failpoints.outer.has(id)).length;
  const runs = [...modes].map(([mode, count]) => `${mode} ${count}`).join(', ');
  process.stdout.write(
    `failpoints with seed ${SEED}: ${build.failpoints.length} awaits, ${passed.size} passed, ${inner} of them the innermost; ${runs}\n`,
  );
  expect(broken).toEqual([]);
  const missed = build.failpoints.filter(({ id, where }) => !passed.has(id) && !ELSEWHERE.test(where));
  expect(missed).toEqual([]);
}, 900_000);

/** Where a world passes an await: the first or the second time. */
interface Passed {
  scenario: Scenario;
  seed: number;
  pass: number;
}

/** Returns where the worlds pass each await, by its id. */
async function passAll(): Promise<Map<number, Passed[]>> {
  const passed = new Map<number, Passed[]>();
  const worlds = SCENARIOS.flatMap((scenario) => scenario[1].map((seed) => ({ scenario, seed })));
  for (const world of worlds) {
    expect((await run(world.scenario, world.seed)).violations).toEqual([]);
    for (const [id, count] of failpoints.passes) {
      const here = [1, 2].slice(0, count).map((pass) => ({ ...world, pass }));
      passed.set(id, [...(passed.get(id) ?? []), ...here]);
    }
  }
  return passed;
}

/** Work that consists of other awaits fails with these: it can only be delayed or aborted. */
function isPossible({ id, where }: Failpoint, mode: Mode): boolean {
  if (EXCLUDED.some(([awaited, modes]) => awaited.test(where) && modes.includes(mode))) return false;
  return !failpoints.outer.has(id) || mode === 'is aborted' || mode === 'waits';
}

function run(
  [, , ways, rates = {}, shape = 'kernel']: Scenario,
  seed: number,
  armed?: { id: number; mode: Mode; pass: number },
): Promise<Verdict> {
  return simulate(seed, {
    library: build.library,
    ways,
    shape,
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
