import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it, vi } from 'vitest';
import { savedFacts } from '../local/replays/support.js';
import { startProgram } from '../support/program.js';
import { installWithoutLibraries, interruptInTime, runHere, startCli } from './support.js';

const folder = mkdtempSync(join(tmpdir(), 'recordings-'));
afterAll(() => rmSync(folder, { recursive: true }));
const RECORDINGS = { BROWSER_POOL_LOCAL_RECORDINGS: folder };

const STEPS = [
  'requests a browser from the pool',
  'leased browser \\w{8}',
  'connects over',
  'connected',
  'callback runs',
  'opened "The Little Shop"',
  'callback ended: succeeded',
  'cleaned up',
  'recording started',
  'recording stopped',
  'replay listed',
  'replay: ready',
  'released: back in the pool',
];

it('leases with each library and protocol, prints each step, and ends with code that runs', async () => {
  const demo = startCli(['demo'], RECORDINGS);
  const { code, stdout, stderr } = await demo.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const links = [...stdout.matchAll(/^(\w+ \w+) replay +(file:\S+)$/gm)];
  expect(links.map(([, job]) => job)).toEqual(['playwright cdp', 'puppeteer cdp', 'puppeteer bidi']);
  for (const [, job, link] of links) {
    const facts = { leaseName: `demo-${job!.replace(' ', '-')}`, state: 'ready' };
    const saved = savedFacts(fileURLToPath(link!));
    expect(saved).toMatchObject(facts);
    // The replay shows the calls of the library.
    expect(JSON.stringify(saved)).toContain('"kind":"call"');
  }
  for (const who of ['playwright cdp', 'puppeteer cdp', 'puppeteer bidi']) {
    for (const step of STEPS) expect(stdout).toMatch(new RegExp(`^ +[\\d.]+ s  ${who} +${step}`, 'm'));
  }
  expect(stdout).toContain('waits: no browser is free');
  expect(stdout).toMatch(
    /^library +protocol +acquire +connect +callback +cleanup +release +released +replays$/m,
  );
  expect(stdout.match(/reused +ready$/gm)).toHaveLength(3);
  expect(stdout).toMatch(/^playwright cdp read +Order \d for Ada: Teapot .*, 24\.00 EUR$/m);
  expect(stdout).toMatch(/^puppeteer bidi read +Order \d for Grace: Lamp .*, 39\.50 EUR$/m);
  await demo.leavesNothing();

  const [, printed] = /hello\.mjs:\n\n([^]*)\n\nIt runs .* BROWSER_POOL_BASE_URL=local node/.exec(stdout)!;
  const hello = printed!.replace('https://example.com', 'data:text/html,<title>My page</title>');
  const words = ['--input-type=module', '--eval', hello];
  const ended = await startProgram(words, { BROWSER_POOL_BASE_URL: 'local' }).ended;
  expect(ended).toEqual({ code: 0, stdout: 'My page reused\n', stderr: '' });
});

it('runs with one library alone, and prints what it left out', async () => {
  const demo = startProgram([installWithoutLibraries('puppeteer-core'), 'demo'], RECORDINGS);
  const { code, stdout, stderr } = await demo.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout.split('\n').slice(0, 3)).toEqual([
    '1 job, 1 browser',
    'Left out: playwright cdp. To add it: npm install playwright-core',
    'Left out: puppeteer bidi. To add it: npm install chromium-bidi',
  ]);
  expect(stdout.match(/reused +ready$/gm)).toHaveLength(1);
  expect(stdout).toContain("from 'pooled-browser/puppeteer';");
  await demo.leavesNothing();
});

it.each([/3 jobs/, /callback runs/])(
  'leaves nothing behind when it is interrupted after %s',
  async (step) => {
    const { code, stderr } = await interruptInTime(async () => {
      const demo = startCli(['demo'], RECORDINGS);
      await demo.prints(step);
      const ended = await demo.end('SIGINT');
      await demo.leavesNothing();
      return ended;
    });
    expect({ code, stderr }).toEqual({ code: 130, stderr: 'pooled-browser: Interrupted by SIGINT.\n' });
  },
);

it('prints what to install without a browser', async () => {
  vi.stubEnv('CHROME_PATH', '/nowhere');
  const { code, stderr } = await runHere(['demo']);
  expect(code).toBe(1);
  expect(stderr).toMatch(/\/nowhere[^]*install-browser/);
});
