import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect, it, onTestFailed } from 'vitest';
import { Program } from '../support/program.js';
import { EXAMPLE_TIMEOUT } from './support.js';

const RELEASED = 'The browser was reused';

/** The examples that run-all runs, in its order, with their outputs. */
const OUTPUTS: Record<string, string | RegExp> = {
  'hello-playwright': `Playwright read: Hello, Clicked\n${RELEASED}; replays: 0\n`,
  'hello-puppeteer-bidi': `Puppeteer over BiDi read: Hello, Clicked\n${RELEASED}; replays: 0\n`,
  'await-using':
    ['acquiring', 'acquired', 'connecting', 'connected'].map((step) => `- ${step}\n`).join('') +
    'Playwright read: Leased until the end of the block\n' +
    ['cleaned-up', 'replays', 'released', 'ended'].map((step) => `- ${step}\n`).join('') +
    'The browser is back in its pool.\n',
  'opentelemetry/main': [
    'The run failed: The shop is closed.',
    'nightly check',
    '  browser.acquire',
    '  browser.connect',
    '  browser.run  (The shop is closed.)',
    '    open the shop',
    '  browser.cleanup',
    '  browser.replays',
    '  browser.release\n',
  ].join('\n'),
  'other-library/main': `chrome-remote-interface read: Hello\n${RELEASED}.\n`,
  'own-service/main':
    'Faults of the adapter: 0\nRented: a rental with a string as its number\nThe browser was destroyed.\n',
  'ai-agent/main': /said, after 2 steps: The page is called "Opening hours"/,
  // Prints to stderr.
  'agent-session/main': '',
  'mcp/main': /Page Title: Shop\n[^]*This is a new browser\./,
  'mcp-lease/main': /Page Title: Shop\n[^]*Released: [^]*"reused"[^]*2: Shop /,
  'python/main':
    /^Python read: Hello from Python\n(Playwright for )?Python read: Hello from Python\n(websockets read: Hello from Python|Skipped client\.py: .*)\n$|^Skipped: there is no python3 .*\n$/,
  'crawlee/main': 'Crawled: Flowers, Seeds, Shop\nLeases released: 1, still held: 0\n',
  'many-machines/main':
    /^A worker is killed .*\n(Page \d: fulfilled, [12] attempts?\n){5}Browsers still leased: 0\n$|^Skipped: /,
};

/** One of their tests fails on purpose, so run-all leaves them out. */
const SUITES = ['jest/main', 'node-test/main'];
const known = [...Object.keys(OUTPUTS), ...SUITES];

it('lists every example in run-all and in the README, and each folder has its own README', () => {
  const names = readdirSync('examples').flatMap((name) => {
    if (existsSync(`examples/${name}/main.ts`)) return `${name}/main`;
    return /^(.+)\.ts$/.exec(name)?.[1] ?? [];
  });
  expect(names.toSorted()).toEqual([...known, 'run-all'].toSorted());
  const all = readFileSync('examples/run-all.ts', 'utf8').matchAll(/^ {2}'(.+)',$/gm);
  expect([...all].map(([, name]) => name)).toEqual(Object.keys(OUTPUTS));
  const readme = readFileSync('examples/README.md', 'utf8');
  for (const name of known) {
    const [folder, main] = name.split('/') as [string, string?];
    expect(readme).toContain(main ? `](${folder}/README.md)` : `](${name}.ts)`);
    if (main)
      expect(readFileSync(`examples/${folder}/README.md`, 'utf8')).toMatch(
        new RegExp(`npx tsx (node_modules/pooled-browser/)?examples/${name}\\.ts`),
      );
  }
});

it(
  'runs all of them on browsers of this machine',
  async () => {
    const example = start('run-all');
    // After a timeout, the last name is the example that hung.
    onTestFailed(() => console.error(example.stdout + example.stderr));
    const { code, stdout, stderr } = await example.ended;
    expect(code, stderr).toBe(0);
    expect(stderr).toContain('second: done, the browser was reused\n');
    let rest = inOrder(stdout);
    for (const [name, output] of Object.entries(OUTPUTS).toReversed()) {
      const [before, own] = rest.split(`${name}:\n`) as [string, string];
      const printed = own.replace(/\n$/, '');
      if (typeof output === 'string') expect(printed).toBe(output);
      else expect(printed).toMatch(output);
      rest = before;
    }
    // Playwright's MCP server and a killed worker leave their folders.
    const kept = /^(pooled-browser-artifacts|pw)-/;
    await expect.poll(() => example.leftovers().filter((name) => !kept.test(name))).toEqual([]);
  },
  EXAMPLE_TIMEOUT,
);

it.each([
  ['python/main', 'there is no python3 on this machine'],
  ['many-machines/main', 'there is no redis-server on this machine (apt-get install redis-server)'],
])('%s is skipped where its program is missing, and prints which one', async (name, reason) => {
  const stdout = `Skipped: ${reason}.\n`;
  expect(await start(name, { PATH: '/nowhere' }).ended).toEqual({ code: 0, stdout, stderr: '' });
});

/** The cleanup and the list of replays run at the same time, so either may end first. */
function inOrder(stdout: string): string {
  return stdout.replace('- replays\n- cleaned-up\n', '- cleaned-up\n- replays\n');
}

function start(name: string, environment?: Record<string, string>): Program {
  return new Program(['--import', 'tsx', `examples/${name}.ts`], environment);
}
