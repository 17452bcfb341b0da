import { arch, platform } from 'node:os';
import { format, resolveConfig } from 'prettier';

/** What one combination showed. */
export interface Result {
  /** From 1. */
  readonly number: number;
  readonly installer: string;
  /** Name and version. */
  readonly runtime: string;
  /** The version of each library. */
  readonly libraries: Readonly<Record<string, string>>;
  /** `passed` or `failed` for each part that ran. */
  readonly ran: Readonly<Record<string, string>>;
  /** What failed. */
  readonly faults: readonly string[];
  readonly seconds: number;
}

const NOT_RUN = 'not run';

/** The document of what was run, as Markdown. */
export async function compatibility(results: readonly Result[], planned: number): Promise<string> {
  // Node first.
  const runtimes = [...new Set(results.map(({ runtime }) => runtime))].toSorted(
    (a, b) => Number(b.startsWith('Node')) - Number(a.startsWith('Node')) || byVersion(a, b),
  );
  const ofRuntime = (runtime: string) => results.filter((result) => result.runtime === runtime);
  const libraries = Object.keys(results[0]!.libraries);
  const seconds = results.reduce((sum, result) => sum + result.seconds, 0);
  const text = `# Compatibility

\`npm run matrix\` writes this page. It installs the packed package as a user does, with each package manager, beside the
oldest supported version, the newest version and the release before of each library, and runs programs, fixtures and types
there. In the last table, each value of a column meets each value of every other column. Bun and Deno can not read packages of
Plug'n'Play, and Vitest 5 needs Node 22: this leaves ${planned} combinations, of which ${results.length === planned ? 'all' : results.length} were run.

Run on ${new Date().toISOString().slice(0, 10)} on ${platform()} ${arch()}; the combinations took ${Math.round(seconds / 60)} minutes in all. macOS and
Windows: ${NOT_RUN}.

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
    'queue (BullMQ)',
    'ends and commands',
    'features',
    'Vitest',
    'Playwright Test',
  ],
  runtimes.map((runtime) => {
    const own = ofRuntime(runtime);
    const parts = ['leases', 'leases', 'leases', 'queue', 'ends', 'features', 'Vitest', 'Playwright Test'];
    return [runtime, platform(), ...parts.map((part) => shareOf(own, part))];
  }),
)}

"Ends and commands": SIGTERM, SIGINT, SIGKILL with \`releaseOnCrash\`, \`process.exit\`, an uncaught exception and rejection, the
browsers of this machine in a program that ends by itself, \`exec\`, \`map\` that is killed and resumed, \`proxy\`, and the service
\`cdp\`. Features: \`exposeNetwork\`, downloads, artifacts and recordings. Both run once for each runtime and each
package manager. Vitest and Playwright Test start Node: they were not run on Bun and Deno. Playwright has no BiDi.

## Package managers

${table(
  [
    'package manager',
    'install',
    'leases',
    'queue',
    'types',
    'ends and commands',
    'features',
    'Vitest',
    'Playwright Test',
  ],
  [...new Set(results.map(({ installer }) => installer))].map((installer) => {
    const own = results.filter((result) => result.installer === installer);
    const parts = ['install', 'leases', 'queue', 'types', 'ends', 'features', 'Vitest', 'Playwright Test'];
    return [installer, ...parts.map((part) => shareOf(own, part))];
  }),
)}

## Versions of libraries

${table(
  ['library', 'version', 'leases', 'queue', 'types', 'Vitest', 'Playwright Test'],
  libraries.flatMap((library) =>
    [...new Set(results.map((result) => result.libraries[library]!))].toSorted(byVersion).map((version) => {
      const own = results.filter((result) => result.libraries[library] === version);
      const parts = ['leases', 'queue', 'types', 'Vitest', 'Playwright Test'];
      return [library, version, ...parts.map((part) => shareOf(own, part))];
    }),
  ),
)}

@playwright/test has the version of playwright-core. Vitest before 4.1: the wait for a browser counts as time of the test.

## All combinations

${table(
  ['', 'package manager', 'runtime', ...libraries, 'passed', 'failed'],
  results.map(({ number, installer, runtime, libraries: versions, ran }) => {
    const named = (status: string) =>
      Object.keys(ran)
        .filter((part) => ran[part] === status)
        .join(', ');
    return [
      `${number}`,
      installer,
      runtime,
      ...libraries.map((name) => versions[name]!),
      named('passed'),
      named('failed'),
    ];
  }),
)}
`;
  const options = await resolveConfig('examples/compatibility.md');
  return format(text, { ...options, parser: 'markdown' });
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
