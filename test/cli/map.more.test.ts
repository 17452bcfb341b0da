import { readdirSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { basename, join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Site } from '../support/site.js';
import { FakeService } from '../support/fake-service.js';
import { titled } from '../support/local.js';
import { processesOf } from '../support/processes.js';
import { realSession } from '../support/real-session.js';
import { ASKS, inOrder, Jobs, LIBRARY, parse } from './jobs.js';
import { SLOW_START } from '../support/program.js';
import { hasTerminals, runHere, startAtTerminal, startClient } from './support.js';

const jobs = new Jobs();
const { file, script, inputs, map, results, run } = jobs;
const anyId = expect.any(String) as string;

describe('results', () => {
  it('are lines of JSON in --out, one for each line of the file that is not blank, and the exit code is 0', async () => {
    const task = `
      let running = 0;
      export default async ({ input, page }) => {
        running++;
        await page.goto(input);
        // The first two tasks run at once.
        while (running < 2) await new Promise((resolve) => setTimeout(resolve, 10));
        return page.title();
      };`;
    const list = file('urls.txt', `\uFEFF${titled('a')}\r\n\r\n  \n${titled('b')}\n${titled('c')}`);
    const flags = ['--concurrency', '1', '--pages-per-lease', '2'];
    const words = ['map', 'test', script(task), list, '--out', jobs.out, ...flags];
    const { code, stdout, stderr } = await runHere(words, jobs.local);
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(stderr).toMatch(/^pooled-browser: Finished: 3 succeeded, 0 failed, in [\d.]+ s\.\n$/m);
    expect(inOrder(results())).toEqual(
      ['a', 'b', 'c'].map((value, index) => ({
        status: 'fulfilled',
        index,
        input: titled(value),
        attempts: 1,
        sessionId: anyId,
        value,
      })),
    );
    expect(jobs.leased).toBe(0);
  });

  it('come from browsers that reach the hosts of --expose-network through this machine', async () => {
    await using site = await Site.open((_, response) => response.end('<title>here</title>'));
    const { host } = new URL(site.url);
    const task = 'export default async ({ input, page }) => (await page.goto(input), page.title());';
    const { code, stdout, stderr } = await run([script(task), inputs(site.url), '--expose-network', host]);
    expect(code, stderr).toBe(0);
    expect(parse(stdout)).toMatchObject([{ status: 'fulfilled', value: 'here' }]);
    expect(stderr).toContain(`The browser reaches ${host} through this machine.`);
  });

  it('alone are on stdout, whatever the script prints, as soon as stdin has an input', async () => {
    const task = `export default ({ input }) => { console.log('at', input); return input.toUpperCase(); };`;
    const running = map([script(task), '--tag', 'job=letters'], { stdin: 'pipe' });
    running.child.stdin!.write('a\nb');
    await running.prints(/"input":"a".*\n/);
    running.child.stdin!.end('b\n');
    const { code, stdout, stderr } = await running.ended;
    expect(code).toBe(0);
    expect(parse(stdout)).toMatchObject([
      { input: 'a', value: 'A' },
      { input: 'bb', value: 'BB' },
    ]);
    const printed = stderr.split('\n').filter((line) => !line.startsWith('pooled-browser: '));
    expect(printed).toEqual(['at a', 'at bb', '']);
  });

  it('have the reason of each input that failed after its retries; reasons are grouped at the end', async () => {
    const task = `export default ({ input, attempt, page }) => {
      if (input === 'odd') throw 'a string';
      if (input === 'object') return page;
      if (input === 'good' && attempt === 2) return attempt;
      throw new RangeError('no price on https://shop.test/' + input + ' after 30' + input.length + ' ms');
    };`;
    const list = inputs('odd', 'one', 'good', 'object', 'three', 'seventeen');
    const flags = ['--retries', '1', '--ordered', '--concurrency', '1'];
    const { code, stdout, stderr } = await run([script(task), list, ...flags]);
    expect(code).toBe(1);
    expect(parse(stdout).slice(1, 4)).toEqual([
      {
        status: 'rejected',
        index: 1,
        input: 'one',
        attempts: 2,
        sessionId: anyId,
        reason: { name: 'RangeError', message: 'no price on https://shop.test/one after 303 ms' },
      },
      { status: 'fulfilled', index: 2, input: 'good', attempts: 2, sessionId: anyId, value: 2 },
      expect.objectContaining({
        reason: expect.objectContaining({ name: 'TaskResultError' }) as object,
      }) as object,
    ]);
    const [headline, ...reasons] = stderr
      .slice(stderr.indexOf('pooled-browser: 5 inputs failed'))
      .split('\n');
    expect(headline).toBe('pooled-browser: 5 inputs failed:');
    expect(reasons.slice(0, 4)).toEqual([
      '  3 × RangeError: no price on https://shop.test/one after 303 ms',
      '  1 × a string (for example odd)',
      expect.stringMatching(
        /^ {2}1 × TaskResultError: The task returned an object of class \w*Page\. Return data/,
      ),
      expect.stringMatching(/^pooled-browser: Finished: 1 succeeded, 5 failed, in [\d.]+ s\.$/),
    ]);
    expect(jobs.leased).toBe(0);
  });
});

it('collects artifacts of a failed task, and adds their paths to its result', async () => {
  const evidence = join(jobs.folder, 'evidence');
  const task = "export default ({ input }) => { if (input === 'bad') throw new Error('not good'); };";
  const words = [script(task), inputs('good', 'bad'), '--artifacts', evidence, '--ordered'];
  const { code, stdout, stderr } = await run(words);
  expect(code).toBe(1);
  const found = parse(stdout).map(({ artifacts = [] }) => artifacts.map((path) => basename(path)));
  expect(found).toEqual([[], ['screenshot.png']]);
  expect(readdirSync(evidence)).toEqual([expect.stringMatching(/^task-1-attempt-1-\w{6}$/)]);
  expect(stderr).toContain(`pooled-browser: Artifacts: 1 file in ${evidence}\n`);
});

it('stops its tasks at SIGTERM, releases all browsers, prints how to continue, and exits with 143', async () => {
  const held: ServerResponse[] = [];
  await using site = await Site.open((_request, response) => void held.push(response));
  const running = map([script(ASKS), '-', '--out', jobs.out, '--release-on-crash'], { stdin: 'pipe' });
  running.child.stdin!.write(`${site.url}/1\n${site.url}/2\n`);
  await expect.poll(() => held.length, SLOW_START).toBe(2);
  expect(jobs.leased).toBe(2);
  const commands = processesOf(running.folder).map(({ command }) => command);
  expect(commands.join('\n')).toContain('release-process');
  const { code, stderr } = await running.end('SIGTERM');
  expect(code).toBe(143);
  expect(stderr).toContain('Press Ctrl-C again to quit immediately.');
  expect(stderr).toContain('Ended early: 0 succeeded, 0 failed');
  expect(stderr).toContain('To continue, add --resume to the same command.');
  expect(jobs.leased).toBe(0);
  await running.leavesNothing();
});

it('exits with 1 when the service refuses, although stdin is open', async () => {
  const running = startClient(['map', 'nowhere', script(ASKS)], jobs.local, { stdin: 'pipe' });
  running.child.stdin!.write('a\n');
  const { code, stdout, stderr } = await running.ended;
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toContain('With --out, a job can be resumed.');
  expect(stderr).toContain('nowhere');
});

const LINK = 'https://replays.test/view?jwt=eyJhbGciOi.eyJzdWIi.c2ln&replay_id=r2';
const OLD = { replay_id: 'r1', finished_at: '2026-01-01T00:00:00Z', replay_view_url: 'https://old.test' };
const NEW = { ...OLD, replay_id: 'r2', replay_view_url: LINK };

it('prints the recordings of its leases at the end, and adds them to the results', async () => {
  await using service = await FakeService.start();
  const lent = await realSession(jobs.local);
  const sessionId = String(lent['session_id']);
  onTestFinished(() => jobs.pool.release(sessionId, { reuse: false }));
  service.script('acquire', { status: 200, json: lent });
  service.script('start-replay', { status: 201, json: NEW });
  service.script('replays', { status: 200, json: [OLD] }, { status: 200, json: [OLD, NEW] });
  // Takes long enough for a recording to start.
  const task = script('export default () => new Promise((resolve) => setTimeout(resolve, 500));');
  const flags = ['--concurrency', '1', '--replays', 'record'];
  const words = ['map', 'pool', ...LIBRARY, task, inputs('a', 'b'), ...flags];
  const { code, stdout, stderr } = await runHere(words, service.options);
  expect(code).toBe(0);
  const results = parse(stdout).map((result) => [result.input, result.sessionId, result.replays]);
  expect(results).toEqual(['a', 'b'].map((input) => [input, sessionId, [LINK]]));
  expect(stderr.match(/(?<=: session \w+: replay).*/g)).toEqual([` ${LINK}`]);
  expect(stderr).not.toContain('old.test');
});

describe('progress', () => {
  it('is printed from time to time without a terminal', async () => {
    const held: ServerResponse[] = [];
    await using site = await Site.open(({ url }, response) => {
      if (url === '/ready') response.end();
      else held.push(response);
    });
    const began = performance.now();
    const list = inputs(`${site.url}/ready`, `${site.url}/held`);
    const running = map([script(ASKS), list, '--concurrency', '1']);
    // Until the second response, no more inputs are done.
    await running.prints(/pooled-browser: 1 of 2 finished, 1 browser, [\d.]+\/s/);
    await expect.poll(() => held.length).toBe(1);
    held[0]!.end();
    const { code, stderr } = await running.ended;
    expect(code).toBe(0);
    expect(stderr).not.toContain('\x1b');
    // At most one line in three seconds.
    const most = (performance.now() - began) / 3000;
    expect(stderr.match(/ of 2 finished,/g)!.length).toBeLessThanOrEqual(most);
  });

  it.runIf(hasTerminals).each([
    ['without a bar and colors in 50 columns', { NO_COLOR: '1' }, 50],
    ['with a bar, and colors where they are allowed', { FORCE_COLOR: '1', TERM: 'dumb' }, undefined],
  ])('is below all messages at a terminal, %s', async (_what, environment, columns) => {
    for (const name of ['NO_COLOR', 'FORCE_COLOR', 'TERM']) vi.stubEnv(name, undefined);
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
    const task = `export default async ({ input, index }) => {
      if (index === 0) throw new RangeError('no price on this very long page of the shop');
      await new Promise((resolve) => setTimeout(resolve, 700));
      console.log('at the end');
    };`;
    const urls = [0, 1].map((index) => `https://shop.example.com/products/${index}?sort=price&page=1`);
    const words = [script(task), inputs(...urls), '--out', jobs.out, '--concurrency', '1'];
    const { code, stdout } = await startAtTerminal(['map', 'test', ...LIBRARY, ...words], jobs.local, columns)
      .ended;
    expect(code).toBe(1);
    expect(stdout.includes('\x1b[31m1 failed\x1b[39m')).toBe(columns === undefined);
    const plain = stripVTControlCharacters(stdout);
    expect(plain).toContain('1 failed');
    expect(/\[=+\] 2 of 2 finished/.test(plain)).toBe(columns === undefined);
    expect(plain).toContain('last error: RangeError: no price on this very lo');
    expect(plain).toMatch(/\d s {2}.*https:\/\/shop\.example\.com/);
    expect(plain).toMatch(/at the end\r\n/);
    const [live] = plain.split('pooled-browser: ', 1);
    const widths = live!.split(/[\r\n]/).map((row) => row.length);
    expect(Math.max(...widths)).toBe(columns === undefined ? 79 : columns - 1);
    expect(plain.trimEnd()).toMatch(
      /\npooled-browser: Finished: 1 succeeded, 1 failed, in [\d.]+ s\. To retry/,
    );
  });
});
