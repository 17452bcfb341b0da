import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { titleOf } from '../../src/recorder/page/title.js';
import { openReplay, readReplay, told } from '../features/replays/support.js';
import { usePerson } from '../local/pages/support.js';
import { startChromium, type Chromium } from '../support/chromium.js';
import type { Program } from '../support/program.js';
import { startCli } from './support.js';

const person = usePerson();
const all = mkdtempSync(join(tmpdir(), 'recorded-commands-'));
let browser: Chromium;
/** The recordings of one test. */
let folder: string;
beforeAll(async () => {
  browser = await startChromium();
});
beforeEach(() => {
  folder = mkdtempSync(join(all, 'test-'));
});
afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  rmSync(all, { recursive: true });
});

/** Starts a command with the pool `shop`, which is a browser without a service. */
const start = (command: string, ...args: string[]): Program =>
  startCli([command, 'shop', ...args], {
    BROWSER_POOL_SERVICE: 'cdp',
    BROWSER_POOL_BASE_URL: browser.url,
    BROWSER_POOL_LOCAL_RECORDINGS: folder,
  });

const VISIT = `
  const { chromium } = require('playwright-core');
  chromium.connectOverCDP(process.env.BROWSER_POOL_CDP_WS_URL).then(async (browser) => {
    const page = browser.contexts()[0].pages()[0];
    await page.goto('data:text/html,<title>Shop</title><h1>Shop</h1>');
    await page.waitForTimeout(1500);
    process.exit(Number(process.argv[1]));
  });`;

/** The links that a command printed, with the names before them. */
function linksIn(text: string): { name: string | undefined; link: string }[] {
  const found = text.matchAll(/replay (?:(\S.*): )?(file:\S+)/g);
  return Array.from(found, ([, name, link]) => ({ name, link: link! }));
}

const recordings = () => readdirSync(folder).filter((name) => name.startsWith('20'));

it.each([
  { code: 0, result: 'succeeded', failures: [] },
  { code: 3, result: 'failed', failures: ['failed The command exited with 3.'] },
])('exec --record prints the link of a command that exits with $code', async ({ code, result, failures }) => {
  const exec = start('exec', '--record', '--name', 'nightly', '--', 'node', '-e', VISIT, String(code));
  const ended = await exec.ended;
  expect(ended).toMatchObject({ code, stdout: '' });
  expect(ended.stderr).toMatch(/^pooled-browser: replay nightly: file:\S+\n$/);
  const [{ name = '', link } = { link: '' }] = linksIn(ended.stderr);
  expect(existsSync(fileURLToPath(link))).toBe(true);
  const { facts } = readReplay({ replay_view_url: link });
  expect(facts).toMatchObject({ state: 'ready', leaseName: 'nightly', result });
  expect(told(facts, 'failed')).toEqual(failures);
  expect(told(facts, 'navigation').join()).toContain('Shop');
  // No library reports what the command does.
  expect(told(facts, 'command').join()).toContain('command Page.navigate data:text/html');
  await openReplay(person, link, name);
});

it('exec --record names the replay by the command, without its options', async () => {
  const exec = start('exec', '--record', '--', 'node', '-e', VISIT, '0');
  const [{ link } = { link: '' }] = linksIn((await exec.ended).stderr);
  expect(titleOf(readReplay({ replay_view_url: link }).facts)).toBe('node');
});

it('exec --playwright --record prints the link of each worker of a suite, whose replay shows the failed test', async () => {
  const suite = ['node_modules/@playwright/test/cli.js', 'test', '-c', 'test/fixtures/suites/failing'];
  const exec = start('exec', '--playwright', '--record', '--', 'node', ...suite);
  const { code, stdout, stderr } = await exec.ended;
  expect({ code, stdout }).toMatchObject({ code: 1, stdout: expect.stringContaining('1 failed') as string });
  const links = linksIn(stderr);
  expect(links, stderr).toHaveLength(1);
  const [{ link } = { link: '' }] = links;
  const list = new URL('../replays.html', link);
  expect(stderr).toContain(`All replays: ${list.href}\n`);
  expect(existsSync(list)).toBe(true);
  const { facts } = readReplay({ replay_view_url: link });
  expect(facts).toMatchObject({ state: 'ready', pool: 'shop', service: 'cdp' });
  const shown = told(facts, 'page-opened', 'navigation', 'click', 'command');
  expect(shown.filter((one) => one.includes('<h1>Cart'))).not.toEqual([]);
  expect(shown).toContain('click button Pay');
  // The assertion waits for the text, and asks for it many times.
  const [asked, again] = shown.slice(shown.indexOf('click button Pay') + 1);
  expect(asked).toBe('command Runtime.callFunctionOn');
  expect(again).not.toBe(asked);
  // Nothing says which test a worker runs.
  await openReplay(person, link, titleOf(facts));
});

it('map --record failures prints the name and the link of a lease in which an input failed, and keeps no other', async () => {
  const task = join(folder, 'task.mjs');
  writeFileSync(
    task,
    `export default async ({ input, page }) => {
      await page.goto('data:text/html,<h1>' + input);
      await page.waitForTimeout(1000);
      if (input === 'bad') throw new Error('No price.');
      return input;
    };`,
  );
  const inputs = join(folder, 'inputs.txt');
  writeFileSync(inputs, 'good\nbad\n');
  const flags = ['--record', 'failures', '--name', 'prices', '--retries', '0', '--concurrency', '1'];
  const map = start('map', task, inputs, ...flags, '--tasks-per-lease', '1');
  const { code, stderr } = await map.ended;
  expect(code).toBe(1);
  const links = linksIn(stderr);
  // That of the lease, and the one to the failure.
  expect(links, stderr).toHaveLength(2);
  expect(links[1]!.link).toMatch(`${links[0]!.link}#t=`);
  expect(links[0]!.name).toMatch(/^prices-\d$/);
  expect(recordings()).toHaveLength(1);
  const { facts } = readReplay({ replay_view_url: links[0]!.link });
  expect(facts).toMatchObject({ leaseName: links[0]!.name, result: 'failed' });
  expect(told(facts, 'mark', 'failed')).toEqual(['mark bad', 'failed No price.']);
  // A recording of one task has its name.
  await openReplay(person, links[0]!.link, 'bad');
});

it('proxy --record prints the link of each client, under the name of its path', async () => {
  const proxy = start('proxy', '--port', '0', '--record');
  const [, url] = await proxy.prints(/Serving pool \S+ at (\S+)\n/);
  const client = await chromium.connectOverCDP(`${url}/alice`);
  const page = client.contexts()[0]!.pages()[0]!;
  await page.goto('data:text/html,<title>Shop</title><h1>Shop</h1>');
  await page.waitForTimeout(1_500);
  await client.close();
  const { code, stdout } = await proxy.end('SIGINT');
  expect(code).toBe(0);
  const [{ link } = { link: stdout }] = linksIn(stdout);
  expect(stdout).toMatch(/released  \S+  alice  .*replay alice: file:/);
  const { facts } = readReplay({ replay_view_url: link });
  expect(facts).toMatchObject({ state: 'ready', leaseName: 'alice' });
  expect(told(facts, 'navigation').join()).toContain('Shop');
  expect(told(facts, 'command').join()).toContain('command Page.navigate data:text/html');
  await openReplay(person, link, 'alice');
});
