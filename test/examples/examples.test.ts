import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { startLocalPool } from '../../src/local.js';
import { Program } from '../cli/support.js';

const OUTPUTS: Record<string, string> = {
  'hello-playwright': 'Playwright read: Hello, Clicked\nThe browser was reused; replays: 0\n',
  'hello-puppeteer-bidi': 'Puppeteer over BiDi read: Hello, Clicked\nThe browser was reused; replays: 0\n',
  'await-using':
    ['acquiring', 'acquired', 'connecting', 'connected'].map((step) => `- ${step}\n`).join('') +
    'Playwright read: Mine until the brace\n' +
    ['replays', 'swept', 'released'].map((step) => `- ${step}\n`).join('') +
    'The browser is back in its pool.\n',
};

it('knows every example, as run-all does', () => {
  const names = readdirSync('examples').flatMap((name) => /^(.+)\.ts$/.exec(name)?.[1] ?? []);
  expect(names.toSorted()).toEqual([...Object.keys(OUTPUTS), 'run-all'].toSorted());
  const all = readFileSync('examples/run-all.ts', 'utf8').matchAll(/import\('\.\/(.+)\.js'\)/g);
  expect([...all].map(([, name]) => name)).toEqual(Object.keys(OUTPUTS));
});

it.each(Object.entries(OUTPUTS))('runs %s on a browser of this machine', async (name, stdout) => {
  const example = start(name);
  expect(await example.ended).toEqual({ code: 0, stdout, stderr: '' });
  await example.leavesNothing();
});

it.each(Object.entries(OUTPUTS))(
  'runs %s on the service that the environment names',
  async (name, stdout) => {
    await using service = await startLocalPool();
    const environment = { BROWSER_POOL_BASE_URL: service.baseUrl, BROWSER_POOL_ACCESS_TOKEN: service.token };
    expect(await start(name, environment).ended).toEqual({ code: 0, stdout, stderr: '' });
    expect(service.stats()).toMatchObject({ granted: 1, released: 1, leased: 0 });
  },
);

function start(name: string, environment?: Record<string, string>): Program {
  return new Program(['--import', 'tsx', `examples/${name}.ts`], environment);
}
