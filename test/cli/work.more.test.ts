import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, it, vi } from 'vitest';
import { Site } from '../examples/support.js';
import { useLocalPool } from '../support/local.js';
import { processesOf } from '../support/processes.js';
import { describeWithRedis } from '../support/redis.js';
import { TestRedis } from '../support/redis-server.js';
import { runCli, SLOW_START, startClient, type Program } from './support.js';

/** Loads in half the time of the default. */
const LIBRARY = ['--library', 'puppeteer'];
const PASSWORD = 'canary-password-123';
const TITLE =
  'export default async ({ input, page }) => { await page.goto(input, { timeout: 0 }); return page.title(); };';
/** Fetches the URL of its input, whose response may be held back. */
const ASKS = 'export default async ({ input, signal }) => (await fetch(input, { signal })).text();';

describeWithRedis('map --queue and work', () => {
  const used = useLocalPool({ pools: [{ name: 'test', size: 3 }] });
  let folder: string;
  let out: string;
  let redis: TestRedis;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'work-'));
    out = join(folder, 'results.jsonl');
    redis = await TestRedis.start({ password: PASSWORD });
    vi.stubEnv('REDIS_URL', redis.url);
    return () => redis[Symbol.asyncDispose]();
  });

  function file(name: string, text: string): string {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  }

  function start(command: 'map' | 'work', task: string, ...args: string[]): Program {
    const script = file('task.mjs', task);
    return startClient([command, 'test', ...LIBRARY, script, ...args, '--queue', 'titles'], used.local);
  }

  /** Ends the locks of a killed process at once, as their expiry would do after up to 30 s. */
  async function expireLocks(): Promise<void> {
    const client = await redis.connect();
    const keys = await client.keys('bull:titles:*');
    const locks = keys.filter((key) => /:(lock|stalled-check|pooled-browser:collector)$/.test(key));
    expect(locks).toContain('bull:titles:pooled-browser:collector');
    await client.del(...locks);
    client.disconnect();
  }

  interface Result {
    status: string;
    index: number;
    input: string;
    value?: unknown;
  }

  function results(): Result[] {
    return parse(readFileSync(out, 'utf8'));
  }

  function parse(text: string): Result[] {
    const lines = text.split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Result).toSorted((one, other) => one.index - other.index);
  }

  it('adds the inputs, works with other processes, and collects every result once', async () => {
    let visits = 0;
    const held: (() => void)[] = [];
    // Holds the pages until both processes load one: otherwise one process could finish all of them.
    await using site = await Site.open((request, response) => {
      held.push(() => response.setHeader('content-type', 'text/html').end(`<title>${request.url}</title>`));
      if (++visits >= 3) held.splice(0).forEach((answer) => answer());
    });
    const urls = Array.from({ length: 24 }, (_, index) => `${site.url}/${index}`);
    const inputs = file('urls.txt', urls.join('\n'));
    const worker = start('work', TITLE, '--concurrency', '1');
    await worker.prints(/Working for the queue titles/);
    const map = start('map', TITLE, inputs, '--out', out, '--concurrency', '2');
    await expect.poll(() => used.local.stats().leased, SLOW_START).toBeGreaterThan(1);
    const visible = [map, worker].flatMap(({ folder: own }) =>
      processesOf(own).map(({ command }) => command),
    );
    const { code, stdout, stderr } = await map.ended;
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(stderr).toMatch(/^pooled-browser: Done: 24 fulfilled, 0 failed, in [\d.]+ s\.\n$/m);
    expect(results().map(({ index, input, value }) => ({ index, input, value }))).toEqual(
      urls.map((input, index) => ({ index, input, value: `/${index}` })),
    );
    const work = await worker.end('SIGINT');
    expect(work.code).toBe(0);
    expect(work.stderr).toMatch(/Finished [1-9]\d* inputs?, of which 0 failed/);
    expect([stderr, work.stderr, ...visible].join('\n')).not.toContain(PASSWORD);
    expect(used.local.stats().leased).toBe(0);
  });

  it('gives the running tasks of a worker back to the queue with Ctrl-C, and prints results on stdout', async () => {
    const waiting: (() => void)[] = [];
    await using site = await Site.open(
      (_request, response) => void waiting.push(() => response.end('answer')),
    );
    const inputs = file('urls.txt', `${site.url}/1\n${site.url}/2\n`);
    const worker = start('work', ASKS, '--concurrency', '2');
    await worker.prints(/Working/);
    const map = start('map', ASKS, inputs, '--concurrency', '1');
    await expect.poll(() => waiting.length, SLOW_START).toBe(2);
    expect((await worker.end('SIGINT')).code).toBe(0);
    expect(worker.stderr).toMatch(/Returning the running tasks to the queue/);
    const again = setInterval(() => waiting.splice(0).forEach((answer) => answer()), 50);
    const { code, stdout } = await map.ended;
    clearInterval(again);
    expect([code, parse(stdout).map(({ value }) => value)]).toEqual([0, ['answer', 'answer']]);
  });

  it('continues a collector that was killed or interrupted, with --resume', async () => {
    const count = () => (existsSync(out) ? results().length : 0);
    let answered = 0;
    // The first run gets a part of the answers.
    let most = 4;
    await using site = await Site.open((_request, response) => {
      if (answered < most) response.end(`answer ${++answered}`);
    });
    const inputs = file(
      'urls.txt',
      Array.from({ length: 12 }, (_, index) => `${site.url}/${index}`).join('\n'),
    );
    const first = start('map', ASKS, inputs, '--out', out);
    await expect.poll(count, SLOW_START).toBe(4);
    await first.end('SIGKILL');
    await expireLocks();
    most = 8;
    const second = start('map', ASKS, inputs, '--out', out, '--resume');
    await expect.poll(count, SLOW_START).toBe(8);
    const interrupted = await second.end('SIGINT');
    expect(interrupted.code).toBe(130);
    expect(interrupted.stderr).toMatch(/To continue, add --resume to the same command/);
    most = 1000;
    const third = await start('map', ASKS, inputs, '--out', out, '--resume').ended;
    expect(third.code).toBe(0);
    expect(third.stderr).toMatch(/Done: 4 fulfilled, 0 failed, 8 done before/);
    expect(results().map(({ index, status }) => ({ index, status }))).toEqual(
      Array.from({ length: 12 }, (_, index) => ({ index, status: 'fulfilled' })),
    );
  });

  it('runs failed inputs again with --resume, and leaves one result of each in the file', async () => {
    const inputs = file('numbers.txt', '1\n2\n3\n');
    const fails =
      "export default ({ input }) => { if (input === '2') throw new Error('broken'); return input; };";
    const first = await start('map', fails, inputs, '--out', out, '--retries', '1').ended;
    expect(first.code).toBe(1);
    expect(first.stderr).toMatch(/1 × Error: broken/);
    expect(results()[1]).toMatchObject({ status: 'rejected', attempts: 2, reason: { message: 'broken' } });
    const second = await start(
      'map',
      'export default ({ input }) => input;',
      inputs,
      '--out',
      out,
      '--resume',
    ).ended;
    expect(second.code).toBe(0);
    expect(results().map(({ value }) => value)).toEqual(['1', '2', '3']);
  });

  it('refuses a second collector, and other inputs in the same file of results', async () => {
    await using site = await Site.open(() => {});
    const inputs = file('urls.txt', `${site.url}\n`);
    const first = start('map', ASKS, inputs, '--out', out);
    await expect.poll(() => first.stderr, SLOW_START).toMatch(/running/);
    const second = await start('map', ASKS, inputs).ended;
    expect(second.code).toBe(1);
    expect(second.stderr).toMatch(/The outcomes of the queue titles are collected by process \d+/);
    await first.end('SIGINT');
    writeFileSync(out, `${JSON.stringify({ status: 'fulfilled', index: 0, input: 'another' })}\n`);
    const third = await start('map', ASKS, inputs, '--out', out, '--resume').ended;
    expect(third.code).toBe(2);
    expect(third.stderr).toMatch(/These are not the inputs of .*results\.jsonl: input 1 is /);
  });

  it('writes the results as CSV', async () => {
    const upper = 'export default ({ input }) => ({ upper: input.toUpperCase() });';
    const inputs = file('letters.txt', 'a\nb\n');
    const table = join(folder, 'letters.csv');
    expect((await start('map', upper, inputs, '--out', table, '--format', 'csv').ended).code).toBe(0);
    expect(readFileSync(table, 'utf8')).toMatch(/^index,input,status,attempts,sessionId,value\.upper\r\n/);
  });

  it('says what to do when Redis is missing, unreachable, or has a password in an argument', async () => {
    const task = file('task.mjs', TITLE);
    const run = (environment: Record<string, string | undefined>, ...args: string[]) =>
      runCli(['work', 'test', task, '--queue', 'q', ...args], {
        BROWSER_POOL_BASE_URL: used.local.baseUrl,
        BROWSER_POOL_ACCESS_TOKEN: used.local.token,
        ...environment,
      });
    const [missing, password, gone] = await Promise.all([
      run({ REDIS_URL: undefined }),
      run({}, '--redis', redis.url),
      run({ REDIS_URL: `redis://:${PASSWORD}@127.0.0.1:2` }),
    ]);
    expect(missing).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /^pooled-browser: The address of Redis is missing: set REDIS_URL/,
      ) as string,
    });
    expect(password).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--redis must not contain a password/) as string,
    });
    expect(password.stderr).not.toContain(PASSWORD);
    expect(gone).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/Redis at 127\.0\.0\.1:2 could not be reached within 5 s/) as string,
    });
    expect(gone.stderr).not.toContain(PASSWORD);
  });
});
