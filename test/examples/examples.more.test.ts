import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect, it, onTestFailed, vi } from 'vitest';
import { startLocalPool } from '../../src/local.js';
import { Program } from '../cli/support.js';
import { EXAMPLE_TIMEOUT } from './support.js';

vi.setConfig({ testTimeout: EXAMPLE_TIMEOUT });

const OUTPUTS: Record<string, string> = {
  'hello-playwright': 'Playwright read: Hello, Clicked\nThe browser was reused; replays: 0\n',
  'hello-puppeteer-bidi': 'Puppeteer over BiDi read: Hello, Clicked\nThe browser was reused; replays: 0\n',
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
};

/** Examples with their own tests in this folder. */
const TESTED_ELSEWHERE = [
  'other-library',
  'ai-agent',
  'agent-session',
  'mcp',
  'python',
  'crawlee',
  'chaos',
  'many-machines',
];

/** The same for test runners. One of their tests fails on purpose, so run-all leaves them out. */
const SUITES = ['jest', 'node-test'];

const run = [...Object.keys(OUTPUTS), ...TESTED_ELSEWHERE.map((name) => `${name}/main`)];
const known = [...run, ...SUITES.map((name) => `${name}/main`)];

it('tests every example, and run-all runs all of them except those of test runners', () => {
  const names = readdirSync('examples').flatMap((name) => {
    if (existsSync(`examples/${name}/main.ts`)) return `${name}/main`;
    return /^(.+)\.ts$/.exec(name)?.[1] ?? [];
  });
  expect(names.toSorted()).toEqual([...known, 'run-all'].toSorted());
  const all = readFileSync('examples/run-all.ts', 'utf8').matchAll(/^ {2}'(.+)',$/gm);
  expect([...all].map(([, name]) => name)).toEqual(run);
});

it('lists every example in the README, and each folder has its own README', () => {
  const readme = readFileSync('examples/README.md', 'utf8');
  for (const name of known) {
    const [folder, main] = name.split('/') as [string, string?];
    expect(readme).toContain(main ? `](${folder}/README.md)` : `](${name}.ts)`);
    if (main)
      expect(readFileSync(`examples/${folder}/README.md`, 'utf8')).toContain(`npx tsx examples/${name}.ts`);
  }
});

it('runs all of them on browsers of this machine', async () => {
  const example = start('run-all');
  // After a timeout, the last name is the example that hung.
  onTestFailed(() => console.error(example.stdout + example.stderr));
  const { code, stdout, stderr } = inOrder(await example.ended);
  expect(code, stderr).toBe(0);
  for (const output of Object.values(OUTPUTS)) expect(stdout).toContain(output);
  // Playwright's MCP server and a killed worker leave their folders.
  const kept = /^(pooled-browser-artifacts|pw)-/;
  await expect.poll(() => example.leftovers().filter((name) => !kept.test(name))).toEqual([]);
});

it.each(Object.entries(OUTPUTS))(
  'runs %s on the service that the environment names',
  async (name, stdout) => {
    await using service = await startLocalPool();
    const environment = { BROWSER_POOL_BASE_URL: service.baseUrl, BROWSER_POOL_ACCESS_TOKEN: service.token };
    expect(inOrder(await start(name, environment).ended)).toEqual({ code: 0, stdout, stderr: '' });
    expect(service.stats()).toMatchObject({ granted: 1, released: 1, leased: 0 });
  },
);

it('chaos: each task succeeds, despite faults of requests, WebSockets and browsers', async () => {
  const example = new Program(['--import', 'tsx', 'examples/chaos/main.ts', '8']);
  const { code, stdout, stderr } = await example.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^lease \d+: killBrowser$/m);
  expect(stdout).toMatch(/^Seed 8: \d\d faults; 40 of 40 tasks succeeded\.$/m);
  await example.leavesNothing();
});

/** The cleanup and the list of replays run at the same time, so either may end first. */
function inOrder<Ended extends { stdout: string }>(ended: Ended): Ended {
  return { ...ended, stdout: ended.stdout.replace('- replays\n- cleaned-up\n', '- cleaned-up\n- replays\n') };
}

function start(name: string, environment?: Record<string, string>): Program {
  return new Program(['--import', 'tsx', `examples/${name}.ts`], environment);
}
