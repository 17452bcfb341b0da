/**
 * Writes `examples/reference.md` from the declarations and docstrings of the entries: `npm run reference`. With `--check`, as in
 * `npm run docs`, it fails instead if the page differs.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { format } from 'prettier';
import { Declarations, type Described } from './declarations.js';
import { CALLERS, GUIDES, NESTED } from './reference-parts.js';

const FILE = 'examples/reference.md';
const MOST_WORDS = 4000;
const entries = readdirSync('src').filter((name) => name.endsWith('.ts'));
const api = new Declarations(entries.map((name) => name.replace('.ts', '')));
const callers = CALLERS.map(([name, entry, type]) => ({ name, options: api.membersOf(entry, type) }));
const leaseOptions = new Map(
  callers.slice(0, 3).flatMap(({ options }) => options.map((option) => [option.name, option])),
);

/** Those that each library has. */
const runOptions = new Set(api.membersOf('index', 'RunOptions').map(({ name }) => name));

const text = await format(page(), { parser: 'markdown', printWidth: 110, singleQuote: true });
const words = text.split(/\s+/).length;
if (words > MOST_WORDS) {
  fail(
    `${FILE} would have ${words} words instead of at most ${MOST_WORDS}. Shorten first sentences of docstrings.`,
  );
} else if (!process.argv.includes('--check')) {
  writeFileSync(FILE, text);
  console.log(`${FILE}: ${words} words`);
} else if (readFileSync(FILE, 'utf8') !== text) {
  fail(`${FILE} differs from the docstrings. Run npm run reference.`);
}

function fail(message: string): void {
  console.error(message);
  process.exitCode = 1;
}

function page(): string {
  return [
    '# Reference',
    '<!-- Made from the docstrings by `npm run reference`: change those instead. -->',
    `Each line is the first sentence of a docstring, with the default in parentheses. Your editor shows the rest, with types and errors;
    \`npm run docs\` in a clone makes pages of it. An unknown option is an error that names the similar one.`,
    ...functions(),
    ...optionsOfLease(),
    ...poolParts(),
    ...jobParts(),
    ...proxyParts(),
    ...fixtureParts(),
    ...localParts(),
    ...results(),
    ...errors(),
    ...events(),
    ...commandLine(),
  ].join('\n\n');
}

function functions(): string[] {
  const named = (entry: string, names: readonly string[]) =>
    api.valuesOf(entry).filter(({ name }) => names.includes(name));
  const main = named(
    'playwright',
    CALLERS.map(([name]) => name),
  );
  const root = named('index', [
    'serveProxy',
    'runOf',
    'readCheckpoint',
    'BrowserPool',
    'isPooledBrowserError',
  ]);
  return [
    '## Functions',
    `\`pooled-browser/playwright\` and \`pooled-browser/puppeteer\` have the first four. Those of \`pooled-browser\` take the option \`connector\`,
    for [another library](other-library/README.md).`,
    list([...main, ...root]),
    'Argument of the callback, beside `browser`, `context` and `page`:',
    list(api.membersOf('index', 'LeaseFacts')),
    'A browser of `leaseBrowser` and `attachBrowser` also has:',
    list(without(api.membersOf('index', 'PooledBrowser'), ['index', 'LeaseFacts'])),
    '`handoff` takes, and resolves with ([guide](guides/handoff.md)):',
    list([...api.membersOf('index', 'HandoffOptions'), ...api.membersOf('index', 'HandoffAnswer')]),
  ];
}

function optionsOfLease(): string[] {
  const parts = [
    '## Options of a lease',
    '`attachBrowser`, which leases nothing, takes those that do not concern an acquire request.',
  ];
  const missing = new Set(leaseOptions.keys());
  for (const [title, names] of api.groupsOf('index', 'RunOptions')) {
    const rows = names.map((name) => {
      const option = leaseOptions.get(name);
      if (!option || !missing.delete(name))
        throw new Error(`RunOptions has no option ${name}, or in two groups.`);
      return { ...option, meaning: option.meaning + exceptions(name) };
    });
    const guides = GUIDES[title];
    parts.push(`### ${title}`, list(rows.flatMap(withMembers)), ...(guides ? [`Guides: ${guides}.`] : []));
  }
  const others = [...missing].filter((name) => name !== 'pool');
  const unknown = others.filter((name) => runOptions.has(name));
  if (unknown.length > 0)
    throw new Error(`The docstring of RunOptions has no group with ${unknown.join(', ')}.`);
  const rows = others.map((name) => ({
    ...leaseOptions.get(name)!,
    meaning: leaseOptions.get(name)!.meaning + exceptions(name),
  }));
  parts.push('### Of some functions and libraries', list(rows));
  return parts;
}

/** The functions that lack an option, or the only ones that have it. `attachBrowser` leases nothing, which explains what it lacks. */
function exceptions(option: string): string {
  const having = callers.filter(({ options }) => options.some(({ name }) => name === option));
  const lacking = callers.filter((caller) => !having.includes(caller));
  const named = lacking.filter(({ name }) => name !== 'attachBrowser');
  const names = (list: typeof callers) => list.map(({ name }) => `\`${name}\``).join(', ');
  if (['chromium', 'puppeteer'].includes(option) || named.length === 0) return '';
  return having.length <= lacking.length ? ` (only ${names(having)})` : ` (not ${names(named)})`;
}

function poolParts(): string[] {
  return [
    '## Pools and services',
    '`new BrowserPool(idOrName, options)`; `pool` of `attachBrowser` takes one, too. [Services](services.md), [several](guides/several-services.md).',
    list(api.membersOf('index', 'BrowserPoolOptions').flatMap(withMembers)),
    list(api.membersOf('index', 'BrowserPool')),
    'The services are in `pooled-browser/services`; `serviceFaults` of `pooled-browser/services/conformance` checks [your own](own-service/README.md).',
  ];
}

function jobParts(): string[] {
  const queue = (type: string) => without(api.membersOf('bullmq', type), ['index', 'MapOptions']);
  return [
    '## Tasks',
    'Options of `mapPooledBrowsers` beside those of a lease ([scraping jobs](guides/scraping-jobs.md), [limits for each host](guides/polite-jobs.md)):',
    list(
      without(api.membersOf('playwright', 'PlaywrightMapOptions'), ['playwright', 'PlaywrightRunOptions']),
    ),
    'A task receives, beside what a callback receives:',
    list(without(api.membersOf('index', 'TaskFacts'), ['index', 'LeaseFacts'])),
    'An outcome:',
    list(merged(api.membersOf('index', 'FulfilledOutcome'), api.membersOf('index', 'RejectedOutcome'))),
    '`await mapPooledBrowsers(…)` resolves with:',
    list(api.membersOf('index', 'MapSummary')),
    'Functions of `pooled-browser/bullmq` ([many machines](many-machines/README.md)), and their own options:',
    list(api.valuesOf('bullmq')),
    list(merged(queue('EnqueueOptions'), queue('WorkOptions'), queue('CollectOptions'))),
  ];
}

function proxyParts(): string[] {
  return [
    '## Proxy',
    'Options of `serveProxy` beside those of a lease ([guide](guides/proxy.md)):',
    list(without(api.membersOf('index', 'ProxyOptions'), ['index', 'LeaseOptions'])),
    list(api.membersOf('index', 'PoolProxy')),
    list(api.membersOf('index', 'ProxySteps')),
  ];
}

function fixtureParts(): string[] {
  const own = (entry: string, type: string) =>
    without(api.membersOf(entry, type), ['index', 'LeaseOptions'], ['index', 'BrowserPoolOptions']);
  return [
    '## Fixtures',
    `\`test\` of \`pooled-browser/vitest\` and \`pooled-browser/playwright-test\` has \`page\`, \`context\`, \`browser\`, \`session\`, \`handoff\` and \`extend\`;
    the option \`pooledBrowser\` takes these, and those of a lease but \`name\` and \`signal\` ([guide](guides/test-suites.md)):`,
    list(merged(own('vitest', 'VitestOptions'), own('playwright-test', 'PooledTestOptions'))),
  ];
}

function localParts(): string[] {
  return [
    '## Local pool',
    '`startLocalPool` of `pooled-browser/local` ([guide](guides/local-pool.md)), and the options of each of its `pools`:',
    list(api.membersOf('local', 'LocalPoolOptions')),
    list(api.membersOf('local', 'LocalPoolSettings')),
    list(api.membersOf('local', 'LocalPool')),
  ];
}

function results(): string[] {
  return [
    '## Results',
    '`withPooledBrowser` resolves with a run, `release()` with the same without `value`, and `runOf(error)` returns it for a failed call.',
    list(api.membersOf('index', 'Run')),
  ];
}

function errors(): string[] {
  return [
    '## Errors',
    'Each is a `PooledBrowserError`. Its `code` is stable: `ERR_` and the name, as `ERR_CONNECT`, unless the line says another. What your callback throws is rethrown unchanged.',
    list(
      api.valuesOf('index').filter(({ name }) => /\wError$/.test(name) && !/^is|^PooledBrowser/.test(name)),
    ),
  ];
}

function events(): string[] {
  return [
    '## Events',
    `\`onEvent\` receives them, and the diagnostics channel \`pooled-browser:event\`; stages are on the tracing channels
    \`tracing:pooled-browser:<stage>:*\` ([OpenTelemetry](opentelemetry/README.md)). \`NODE_DEBUG=pooled-browser\` prints each event on one line of
    stderr.`,
    list(merged(api.membersOf('index', 'RunSteps'), api.stepsOf('index', 'PoolEvent'))),
  ];
}

function commandLine(): string[] {
  return [
    '## Command line',
    '`npx pooled-browser` lists the commands; `--help` of each has its flags and examples.',
  ];
}

/** An option, and its members if it is an object. */
function withMembers(option: Described): Described[] {
  const type = NESTED[option.name];
  const members = type === undefined ? [] : api.membersOf('index', type);
  return [option, ...members.map((member) => ({ ...member, name: `${option.name}.${member.name}` }))];
}

function without(members: Described[], ...types: (readonly [entry: string, type: string])[]): Described[] {
  const names = new Set(types.flatMap(([entry, type]) => api.membersOf(entry, type).map(({ name }) => name)));
  return members.filter(({ name }) => !names.has(name));
}

/** The members of several types: the first of each name. */
function merged(...lists: Described[][]): Described[] {
  const all = lists.flat();
  return all.filter(({ name }, at) => all.findIndex((other) => other.name === name) === at);
}

/** A line for each name. */
function list(rows: readonly Described[]): string {
  const line = ({ name, codes, fallback, meaning }: Described) =>
    `- \`${name}\`${fallback && ` (${fallback})`}${codes ? ` (${codes})` : ''}: ${meaning}`;
  return rows.map(line).join('\n');
}
