import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join, resolve } from 'node:path';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { hasFirefox } from '../support/firefox.js';
import { useLocalPool } from '../support/local.js';
import { Program, variablesOf, type Environment } from '../support/program.js';
import { Site } from '../support/site.js';
import { reply } from '../features/handoff/support.js';
import { EXAMPLE_TIMEOUT, runCommand } from './support.js';

const used = useLocalPool({
  pools: ['shop', 'scrapers', 'agents'].map((name) => ({ name, size: 1, onDemand: true })),
});

const FORM =
  '<form method=post action=/account><label>Name <input name=name></label>' +
  '<label>Password <input name=password type=password></label><button>Sign in</button></form>';

/** A shop that shows orders to users who have signed in with the password. */
const shop: RequestListener = async (request, response) => {
  const { url = '', headers } = request;
  response.setHeader('content-type', 'text/html');
  if (url === '/login') return response.end(FORM);
  if (request.method === 'POST') {
    const [body] = (await request.toArray()) as Buffer[];
    const form = new URLSearchParams(String(body));
    if (form.get('password') === 'secret')
      response.setHeader('set-cookie', `user=${form.get('name')}; path=/`);
    return response.end('<h1>Account</h1>');
  }
  const [, user = 'nobody'] = /user=(\w+)/.exec(headers.cookie ?? '') ?? [];
  if (url === '/') return response.end('<h1>Shop</h1>');
  return response.end(`<h1>Order ${url.split('/').at(-1)} of ${user}</h1>`);
};

it(
  'log-in-once and test-suites: sign in once, and use the login in a job, in suites of both runners and with Puppeteer',
  async () => {
    await using site = await Site.open(shop);
    const guide = readFileSync('examples/guides/log-in-once.md', 'utf8');
    const ofSuites = readFileSync('examples/guides/test-suites.md', 'utf8');
    const run = runnerOf(guide + ofSuites, { 'https://shop.example.com': site.url });
    const [logIn, job, ...suites] = commandsOf(guide);
    const otherSuites = commandsOf(ofSuites);
    expect(await run(logIn!)).toBe('Signed in; the browser was reused.\n');
    expect(await run(job!)).toBe('Order 1 of ada\nOrder 2 of ada\nOrder 3 of ada\n');
    expect([suites.length, otherSuites.length]).toEqual([3, 2]);
    const cookies = suites.pop()!;
    // One run of each runner: the commands of the guides differ in the names of their files.
    for (const [index, suite] of suites.entries()) {
      const [start, file] = /^(.* )(shop\S+)$/.exec(otherSuites[index]!)!.slice(1) as [string, string];
      expect(suite.startsWith(start)).toBe(true);
      expect(await run(`${suite} ${file}`)).toContain('2 passed');
    }
    expect(await run(cookies)).toBe('Order 1 of ada\n');
    expect(used.local.stats().leased).toBe(0);
  },
  EXAMPLE_TIMEOUT,
);

it(
  'polite-jobs: runs one task at once for each host, and waits as long as the host says',
  async () => {
    const guide = readFileSync('examples/guides/polite-jobs.md', 'utf8');
    const run = runnerOf(guide, {});
    expect(await run(commandsOf(guide)[0]!)).toBe('6 succeeded, 0 failed, 1 retried\n');
  },
  EXAMPLE_TIMEOUT,
);

it(
  'scraping-jobs: reads the prices of a table from the command line, as a table',
  async () => {
    const guide = readFileSync('examples/guides/scraping-jobs.md', 'utf8');
    const files = [...guide.matchAll(/```(?:csv|mjs)\n([^]*?)```/g)].map(([, text]) => text!);
    const [command] = /npx pooled-browser map .*/.exec(guide)!;
    const run = runnerOf(guide, {});
    const names = /price\.mjs products\.csv/.exec(command)![0].split(' ').toReversed();
    for (const [at, name] of names.entries())
      await run(`printf %s '${files[at]!.replaceAll("'", String.raw`'\''`)}' > ${name}`);
    await run(command);
    const [head, ...rows] = (await run('cat prices.csv')).trimEnd().split('\r\n');
    expect([...guide.matchAll(/`((?:input|value)\.\w+)`/g)].map(([, column]) => column)).toEqual(
      head!.split(',').filter((column) => column.includes('.')),
    );
    expect(rows.map((row) => row.split(',').slice(-2))).toEqual([
      ['Lamp', '12.5'],
      ['Chair', '80'],
    ]);
  },
  EXAMPLE_TIMEOUT,
);

it(
  'downloads: saves files with both libraries and in a job, and uploads a large one',
  async () => {
    await using site = await Site.open((request, response) => {
      const [, name] = /^\/(report|invoice)$/.exec(request.url!) ?? [];
      response.setHeader('content-type', name ? 'text/csv' : 'text/html');
      if (!name)
        return response.end('<a href=/report>Report</a> <a href=/invoice>Invoice</a><input type=file>');
      response.setHeader('content-disposition', `attachment; filename=${name}.csv`);
      return response.end('a,b\n');
    });
    const guide = readFileSync('examples/guides/downloads.md', 'utf8');
    const run = runnerOf(guide, { 'https://shop.example.com': site.url });
    const [report, folder, job, upload] = commandsOf(guide);
    expect(await run(report!)).toBe('Saved report.csv.\n');
    expect(await run('cat report.csv')).toBe('a,b\n');
    expect(await run(folder!)).toMatch(/files\/report\.csv: 4 bytes\n$/);
    expect(await run(job!)).toMatch(/^Report: report-\w{6}\.csv\nInvoice: invoice\.csv\n$/);
    await run('truncate -s 60000000 films.zip');
    expect(await run(upload!)).toBe('The page has a file of 60000000 bytes.\n');
    expect(used.local.stats().leased).toBe(0);
  },
  EXAMPLE_TIMEOUT,
);

it(
  'the skill: its program reads a title, its pool passes all checks, and a program of exec gets the address',
  async () => {
    await using site = await Site.open((_, response) => {
      response.setHeader('content-type', 'text/html');
      response.end('<link rel=icon href=data:,><title>Skill</title>');
    });
    const skill = readFileSync('skills/pooled-browser/SKILL.md', 'utf8').replaceAll('my-pool', 'shop');
    const run = runnerOf(skill, { 'https://example.com': site.url });
    expect(await run('npx tsx title.mts')).toBe('Skill reused\n');
    expect(skill).toContain('npx pooled-browser doctor shop ');
    await run('npx pooled-browser doctor shop');
    const exec = /npx pooled-browser exec shop .*-- (?=python3)/.exec(skill)![0];
    const [, variable] = /CDP in `(\w+)`/.exec(skill)!;
    expect(await run(`${exec} sh -c 'echo $${variable}'`)).toMatch(/^ws:/);
    expect(used.local.stats().leased).toBe(0);
  },
  EXAMPLE_TIMEOUT,
);

it(
  'handoff: prints where the person answers, and goes on with the answer',
  async () => {
    await using site = await Site.open((_, response) => {
      response.setHeader('content-type', 'text/html');
      response.end('<link rel=icon href=data:,><title>Log in</title>');
    });
    const guide = readFileSync('examples/guides/handoff.md', 'utf8');
    const running = runnerOf(guide, { 'https://shop.example.com': site.url })(commandsOf(guide)[0]!);
    await expect.poll(() => programs?.stdout).toMatch(/Please log in\. http\S+\/\n/);
    const [, url] = /Please log in\. (http\S+)/.exec(programs.stdout)!;
    await reply(url!);
    expect(await running).toMatch(/^Please log in\. http\S+\nLog in\n$/);
  },
  EXAMPLE_TIMEOUT,
);

const GUIDES = [
  {
    guide: 'from-launch',
    title: 'runs the code of launch() on a leased browser, and on two browsers of an own local pool',
    outputs: ['Shop\n', '42,42\n'],
  },
  {
    guide: 'from-puppeteer-cluster',
    title: 'runs the tasks of a cluster as a job',
    outputs: ['SITE/items/1 Shop\nSITE/items/2 Shop\nSITE/items/3 Shop\n'],
  },
  {
    guide: 'from-an-sdk',
    title: 'does what the SDK did, and shows the release and the times',
    outputs: [/^Shop, in the session \S+ 0 reused\nWaited \d+ ms for the browser\.\n$/],
  },
  {
    guide: 'agent-runtimes',
    title: 'drives a browser by a lease, by exec, by a proxy, and by a lease with a lifetime',
    outputs: ['Live view: none\nShop\n', 'Shop\n', '1 browser is leased\n', /^8\d{5} ms until the end\n$/],
  },
  {
    guide: 'replays',
    title: 'links to the moment of a failure',
    outputs: [/^file:\/\/\/\S+buy-a-book\S+index\.html#t=[\d.]+\n$/],
  },
  {
    guide: 'release',
    title: 'chooses what happens to the browser',
    outputs: ['Shop: the browser was reused.\n'],
  },
  {
    guide: 'proxy',
    title: 'finds a browser again by its name',
    outputs: ['was at about:blank\nwas at SITE/items/1\n'],
  },
  {
    guide: 'several-services',
    title: 'leases from the first pool that has a browser',
    outputs: ['Shop, with a browser of shop\n'],
  },
  {
    guide: 'local-pool',
    title: 'gives a browser of this machine flags and a page to watch it',
    outputs: ['Shop, with a page to watch it\n'],
  },
  ...(hasFirefox
    ? [{ guide: 'firefox', title: 'drives Firefox', outputs: [/^Shop in firefox\/[\d.]+\n$/] }]
    : []),
  {
    guide: 'scraping-jobs',
    title: 'runs a job with retries, and does not repeat a failure that lasts',
    outputs: [
      'data:text/html,<title>Lamp</title> Lamp\ndata:text/html,<title>Chair</title> Chair\n' +
        'data:text/html,<title></title> Error: There is no such item 1\n',
    ],
  },
];

it.each(GUIDES)(
  '$guide: $title',
  async ({ guide, outputs }) => {
    await using site = await Site.open((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' });
      response.end('<link rel=icon href=data:,><title>Shop</title><h1>Shop</h1>');
    });
    const text = readFileSync(`examples/guides/${guide}.md`, 'utf8');
    const run = runnerOf(text, { 'https://shop.example.com': site.url });
    const commands = commandsOf(text);
    expect(commands).toHaveLength(outputs.length);
    for (const [at, command] of commands.entries()) {
      const output = (await run(command)).replaceAll(site.url, 'SITE');
      const expected = outputs[at]!;
      if (typeof expected === 'string') expect(output).toBe(expected);
      else expect(output).toMatch(expected);
    }
    // A program may end before the service has seen its last connection close.
    await expect.poll(() => used.local.stats().leased).toBe(0);
  },
  EXAMPLE_TIMEOUT,
);

it('the programs have left nothing open: their process ends', async () => {
  programs.child.stdin!.end();
  expect(await programs.ended).toMatchObject({ code: 0 });
});

/** The commands of a guide that run a file of it. */
function commandsOf(guide: string): string[] {
  const files = [...guide.matchAll(/```ts\n\/\/ ([\w.-]+)\n/g)].map(([, name]) => name!);
  const commands = [...guide.matchAll(/```sh\n([^]*?)\n```/g)].flatMap(([, lines]) => lines!.split('\n'));
  return commands.filter((command) => files.some((file) => command.endsWith(` ${file}`)));
}

/** Runs the programs of the guides. */
let programs: Program;
let ran = 0;
afterAll(() => void programs?.child.kill('SIGKILL'));

/** Runs a program of a guide in a folder. Resolves to its output. */
async function runProgram(folder: string, file: string): Promise<string> {
  programs ??= new Program(['--import', 'tsx', 'test/examples/run-programs.mjs'], variables(), {
    stdin: 'pipe',
  });
  const mark = `program ${++ran} has ended`;
  const from = programs.stdout.length;
  programs.child.stdin!.write(`${JSON.stringify({ folder: resolve(folder), file, mark })}\n`);
  const fails = programs.ended.then(({ stdout, stderr }) => {
    throw new Error(`The program has failed:\n${stdout}${stderr}`);
  });
  await Promise.race([programs.prints(new RegExp(mark)), fails]);
  return programs.stdout.slice(from, programs.stdout.indexOf(mark));
}

function variables(): Environment {
  return { NO_COLOR: '1', ...variablesOf(used.local), SHOP_PASSWORD: 'secret' };
}

/**
 * Writes the blocks of a guide that begin with a file name into a folder, and returns a function that runs a command there.
 *
 * @param replaced Addresses of the guide, and those to use instead.
 */
function runnerOf(guide: string, replaced: Record<string, string>) {
  // Inside the repository, where `pooled-browser` is the built package.
  mkdirSync('reports', { recursive: true });
  const folder = mkdtempSync(join('reports', 'guide-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [, name, code] of guide.matchAll(/```ts\n\/\/ ([\w.-]+)\n([^]*?)```/g)) {
    const text = Object.entries(replaced).reduce((all, [from, to]) => all.replaceAll(from, to), code!);
    writeFileSync(join(folder, name!), text);
  }
  // npx does not find the package in its own repository.
  const program = `node ${resolve('dist/cli/main.js')}`;
  return async (command: string) => {
    const [, file] = /^npx tsx (\S+)$/.exec(command) ?? [];
    if (file !== undefined) return runProgram(folder, file);
    return runCommand(command.replace('npx pooled-browser', program), variables(), folder);
  };
}
