import { arch, platform } from 'node:os';
import { format, resolveConfig } from 'prettier';

/** A combination: a browser, a package manager, a runtime, and of some libraries the oldest, the newest or the version before. */
export interface Wanted extends Readonly<Record<string, string | undefined>> {
  readonly browser: 'chromium' | 'firefox';
  readonly installer: string;
  readonly runtime: string;
}

/** What one combination showed, and with what it was run. */
export interface Result {
  readonly wanted: Wanted;
  /** Such as `2026-11-27`. */
  readonly date: string;
  /** Name and version, as of the runtime. */
  readonly browser: string;
  readonly runtime: string;
  /** The version of each library. */
  readonly libraries: Readonly<Record<string, string>>;
  /** `passed` or `failed` for each part that ran. */
  readonly ran: Readonly<Record<string, string>>;
  /** Missing in results from before this field. */
  readonly seconds?: number;
}

interface Row {
  readonly wanted: Wanted;
  /** Undefined if it was not run. */
  readonly result: Result | undefined;
}

const NOT_RUN = 'not run';

/** The document of what was run, as Markdown. */
export async function compatibility(rows: readonly Row[]): Promise<string> {
  const all = rows.flatMap(({ result }) => result ?? []);
  const of = (browser: Wanted['browser']) => all.filter(({ wanted }) => wanted.browser === browser);
  const planned = (browser: Wanted['browser']) =>
    rows.filter(({ wanted }) => wanted.browser === browser).length;
  const [results, firefox] = [of('chromium'), of('firefox')];
  // Node first.
  const runtimes = [...new Set(all.map(({ runtime }) => runtime))].toSorted(
    (a, b) => Number(b.startsWith('Node')) - Number(a.startsWith('Node')) || byVersion(a, b),
  );
  const libraries = Object.keys(results[0]!.libraries);
  const text = `# Compatibility

\`npm run matrix\` writes this page. It installs the packed package as a user does, with each package manager, beside the
oldest supported version, the newest version and the release before of each library, and runs programs, fixtures and types
there. In the last table, each value of a column meets each value of every other column. Bun and Deno can not read packages of
Plug'n'Play, and Vitest 5 needs Node 22: this leaves ${planned('chromium')} combinations, of which ${shareText(results.length, planned('chromium'))} run. They take about
80 minutes. Firefox has ${planned('firefox')} combinations more, of which ${shareText(firefox.length, planned('firefox'))} run.

The last table has the date and the versions of each run, on ${platform()} ${arch()}. macOS and Windows: ${NOT_RUN}.

## Runtimes, drivers and protocols

"6 of 6": so many combinations with this runtime passed. Leases and jobs run in the test runner of the runtime:
\`node --test\`, \`bun test\`, \`deno test\`.

${table(
  [
    'runtime',
    'system',
    'Playwright, CDP',
    'Puppeteer, CDP',
    'Puppeteer, BiDi',
    'Firefox: Puppeteer, BiDi',
    'queue (BullMQ)',
    'ends and commands',
    'further commands',
    'features',
    'Vitest',
    'Playwright Test',
  ],
  runtimes.map((runtime) => {
    const own = (some: readonly Result[]) => some.filter((result) => result.runtime === runtime);
    const shares = (...parts: string[]) => parts.map((part) => shareOf(own(results), part));
    return [
      runtime,
      platform(),
      ...shares('leases', 'leases', 'leases'),
      shareOf(own(firefox), 'leases'),
      ...shares('queue', 'ends', 'commands', 'features', 'Vitest', 'Playwright Test'),
    ];
  }),
)}

"Ends and commands": SIGTERM, SIGINT, SIGKILL with \`releaseOnCrash\`, \`process.exit\`, an uncaught exception and rejection, the
browsers of this machine in a program that ends by itself, \`exec\`, \`map\` that is killed and resumed, \`proxy\` for clients of CDP,
and the service \`cdp\`. Further commands: \`proxy\` for clients of BiDi and of Playwright's own protocol, \`serve\`, \`acquire\` and
\`doctor\`. Features: \`exposeNetwork\`, downloads, artifacts and recordings. These run once for each runtime and each
package manager. Vitest and Playwright Test start Node: they were not run on Bun and Deno, and neither were the other commands and
services. Playwright has no BiDi, and can not drive an installed Firefox.

## Package managers

${table(
  [
    'package manager',
    'install',
    'leases',
    'queue',
    'types',
    'ends and commands',
    'further commands',
    'features',
    'Vitest',
    'Playwright Test',
  ],
  [...new Set(results.map(({ wanted }) => wanted.installer))].map((installer) => {
    const own = results.filter(({ wanted }) => wanted.installer === installer);
    const parts = [
      'install',
      'leases',
      'queue',
      'types',
      'ends',
      'commands',
      'features',
      'Vitest',
      'Playwright Test',
    ];
    return [installer, ...parts.map((part) => shareOf(own, part))];
  }),
)}

## Older versions of Chromium

The combinations run with the browsers of the last table. On 2026-11-27, the tests of connecting, leases, cleaning, jobs and
features in the layer \`real\` were also run with older ones, by \`CHROME_PATH\`:

| Chromium       | what differs                                                                                                 |
| -------------- | ------------------------------------------------------------------------------------------------------------ |
| 150.0.7871.100 | nothing of a lease. Its own WebSockets send neither the language nor the extra headers of their context, those of \`exposeNetwork\` do |
| 140.0.7339.0   | \`exposeNetwork\` takes two names with the same last two labels for one site; over BiDi, a browser without any page is replaced by another one |
| 137, 133       | one lease in the browser's own context: cleaned and reused                                                    |
| 131            | does not count its keepalive requests: it is destroyed after a lease that used its own context, and reused after others |

## Versions of libraries

${table(
  ['library', 'version', 'leases', 'leases in Firefox', 'queue', 'types', 'Vitest', 'Playwright Test'],
  libraries.flatMap((library) =>
    [...new Set(all.flatMap((result) => result.libraries[library] ?? []))]
      .toSorted(byVersion)
      .map((version) => {
        const own = (some: readonly Result[]) =>
          some.filter((result) => result.libraries[library] === version);
        const parts = ['queue', 'types', 'Vitest', 'Playwright Test'];
        return [
          library,
          version,
          shareOf(own(results), 'leases'),
          library === 'puppeteer-core' ? shareOf(own(firefox), 'leases') : '',
          ...parts.map((part) => shareOf(own(results), part)),
        ];
      }),
  ),
)}

@playwright/test has the version of playwright-core. Vitest before 4.1: the wait for a browser counts as time of the test.

## All combinations

${table(
  ['', 'run on', 'browser', 'package manager', 'runtime', ...libraries, 'passed', 'failed'],
  rows.map(({ wanted, result }, index) => {
    const first = [`${index + 1}`, result?.date ?? NOT_RUN];
    if (!result)
      return [
        ...first,
        ...['browser', 'installer', 'runtime', ...libraries].map((name) => wanted[name] ?? ''),
        '',
        '',
      ];
    const { browser, runtime, libraries: versions, ran } = result;
    const named = (status: string) =>
      Object.keys(ran)
        .filter((part) => ran[part] === status)
        .join(', ');
    return [
      ...first,
      browser,
      wanted.installer,
      runtime,
      ...libraries.map((name) => versions[name] ?? ''),
      named('passed'),
      named('failed'),
    ];
  }),
)}
`;
  const options = await resolveConfig('examples/compatibility.md');
  return format(text, { ...options, parser: 'markdown' });
}

function shareText(ran: number, planned: number): string {
  return ran === planned ? 'all were' : `${ran} were`;
}

function shareOf(results: readonly Result[], part: string): string {
  const ran = results.filter((result) => result.ran[part] !== undefined);
  const passed = ran.filter((result) => result.ran[part] === 'passed');
  return ran.length === 0 ? NOT_RUN : `${passed.length} of ${ran.length}`;
}

function byVersion(one: string, other: string): number {
  return one.localeCompare(other, 'en', { numeric: true });
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
