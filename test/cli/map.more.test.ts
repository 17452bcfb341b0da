import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { Site } from '../examples/support.js';
import { FakeService, reply } from '../support/fake-service.js';
import { titled, useLocalPool } from '../support/local.js';
import { realSession } from '../support/real-session.js';
import { hasTerminals, SLOW_START, startAtTerminal, startClient, type ProgramOptions } from './support.js';

// Several programs run one after the other, which takes long on a busy machine.
const used = useLocalPool({ pools: [{ name: 'test', size: 2 }] });
const leased = () => used.local.stats().leased;

let folder: string;
let out: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'map-'));
  out = join(folder, 'results.jsonl');
});

/** Most tests need no particular library: this one loads in half the time of the default. */
const LIBRARY = ['--library', 'puppeteer'];
/** Returns the title of the page at its input. */
const TITLE = 'export default async ({ input, page }) => { await page.goto(input); return page.title(); };';
/** Fetches the URL of its input, whose response the test may delay. */
const ASKS = 'export default async ({ input, signal }) => (await fetch(input, { signal })).text();';

describe('results', () => {
  it('writes one line of JSON for each input to --out, and exits with 0', async () => {
    const inputs = file('urls.txt', `\uFEFF${titled('a')}\r\n\r\n  \n${titled('b')}\n${titled('c')}`);
    const words = ['map', 'test', script(TITLE), inputs, '--out', out];
    const { code, stdout, stderr } = await startClient(words, used.local).ended;
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(stderr).toMatch(/^pooled-browser: Done: 3 fulfilled, 0 failed, in [\d.]+ s\.\n$/m);
    expect(results().toSorted((one, other) => one.index - other.index)).toEqual(
      ['a', 'b', 'c'].map((value, index) => ({
        status: 'fulfilled',
        index,
        input: titled(value),
        attempts: 1,
        sessionId: expect.any(String) as string,
        value,
      })),
    );
    expect(leased()).toBe(0);
  });

  it('reads stdin on demand, and prints only results on stdout, whatever the script prints', async () => {
    const task = `export default ({ input }) => { console.log('at', input); return input.toUpperCase(); };`;
    const running = start(script(task), '--tag', 'job=letters', { stdin: 'pipe' });
    running.child.stdin!.write('a\nb');
    await running.prints(/"input":"a".*\n/);
    running.child.stdin!.end('b\n');
    const { code, stdout, stderr } = await running.ended;
    expect(code).toBe(0);
    expect(parse(stdout).map(({ input, value }) => ({ input, value }))).toEqual([
      { input: 'a', value: 'A' },
      { input: 'bb', value: 'BB' },
    ]);
    const printed = stderr.split('\n').filter((line) => !line.startsWith('pooled-browser: '));
    expect(printed).toEqual(['at a', 'at bb', '']);
  });

  it('exits with 1 when an input failed after its retries, with the reason in its result', async () => {
    const task = `export default ({ input, attempt }) => {
      if (input === 'bad' || attempt === 1) throw new TypeError('no ' + input);
      return attempt;
    };`;
    const args = [script(task), file('in.txt', 'good\nbad'), '--retries', '1', '--ordered'];
    const { code, stdout, stderr } = await start(...args).ended;
    expect(code).toBe(1);
    expect(parse(stdout)).toEqual([
      {
        status: 'fulfilled',
        index: 0,
        input: 'good',
        attempts: 2,
        sessionId: expect.any(String) as string,
        value: 2,
      },
      {
        status: 'rejected',
        index: 1,
        input: 'bad',
        attempts: 2,
        sessionId: expect.any(String) as string,
        reason: { name: 'TypeError', message: 'no bad' },
      },
    ]);
    expect(stderr).toContain('Done: 1 fulfilled, 1 failed');
  });

  it('gives the task a page of Puppeteer over WebDriver BiDi, and runs --pages-per-lease tasks at once', async () => {
    const task = `
      let running = 0;
      let most = 0;
      export default async ({ input, page, browser }) => {
        most = Math.max(most, ++running);
        await page.goto(input);
        while (most < 2) await new Promise((resolve) => setTimeout(resolve, 10));
        running--;
        return [await page.title(), 'isConnected' in browser];
      };`;
    const inputs = file('urls.txt', `${titled('a')}\n${titled('b')}\n`);
    const args = ['--protocol', 'bidi', '--concurrency', '1', '--pages-per-lease', '2'];
    const { code, stdout, stderr } = await start(script(task), inputs, '--ordered', ...args).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('Done: 2 fulfilled') });
    expect(parse(stdout).map(({ value }) => (value as [string])[0])).toEqual(['a', 'b']);
  });

  it('fails an input whose task returns the page, and explains what to return', async () => {
    const words = [script('export default ({ page }) => page;'), file('in.txt', 'a\n')];
    const running = start(...words, '--library', 'playwright');
    const { code, stdout, stderr } = await running.ended;
    expect(code).toBe(1);
    expect(parse(stdout)).toMatchObject([{ status: 'rejected', reason: { name: 'TaskResultError' } }]);
    const message = 'The task returned an object of class Page. Return data that JSON can hold';
    expect(stdout).toContain(message);
    expect(stderr).toContain(`1 input failed:\n  1 × TaskResultError: ${message}`);
    expect(leased()).toBe(0);
  });
});

describe('a job that ends early', () => {
  it('continues with --resume after it was killed, and skips inputs with a result', async () => {
    const asked: string[] = [];
    const held: ServerResponse[] = [];
    await using site = await Site.open(({ url }, response) => {
      asked.push(url!);
      if (held.length < 2 && asked.length > 5) held.push(response);
      else response.end(url);
    });
    const urls = Array.from({ length: 12 }, (_, index) => `${site.url}/${index}`);
    const args = [script(ASKS), file('urls.txt', urls.join('\n')), '--out', out];
    const killed = start(...args, '--concurrency', '2', '--release-on-crash');
    await expect.poll(() => held.length, SLOW_START).toBe(2);
    await killed.end('SIGKILL');
    const done = results().map(({ input }) => input);
    expect(done.length).toBeGreaterThan(0);
    expect(done.length).toBeLessThan(urls.length);
    await expect.poll(leased).toBe(0);

    asked.length = 0;
    const { code, stderr } = await start(...args, '--resume').ended;
    expect(code).toBe(0);
    const rest = urls.filter((url) => !done.includes(url));
    expect(stderr).toContain(`Done: ${rest.length} fulfilled, 0 failed, ${done.length} done before`);
    expect(asked.map((path) => site.url + path).toSorted()).toEqual(rest.toSorted());
    const whole = results().map(({ input }) => input);
    expect(whole.toSorted()).toEqual(urls.toSorted());
  });

  it('retries failed inputs with --resume, and prints how', async () => {
    const inputs = file('in.txt', 'a\nb\n');
    const failing = script(
      "export default ({ input }) => { if (input === 'b') throw new Error('not yet'); };",
    );
    const first = await start(failing, inputs, '--out', out).ended;
    expect(first.code).toBe(1);
    expect(first.stderr).toContain('To retry the failed inputs, add --resume to the same command.');
    const { code, stderr } = await start(script('export default () => {};'), inputs, '--out', out, '--resume')
      .ended;
    expect(code).toBe(0);
    expect(stderr).toContain('Done: 1 fulfilled, 0 failed, 1 done before');
    expect(results().map(({ input, status }) => [input, status])).toEqual([
      ['a', 'fulfilled'],
      ['b', 'fulfilled'],
    ]);
  });

  it.each(['SIGINT', 'SIGTERM'] as const)(
    'stops its tasks at %s, releases all browsers, and prints how to continue',
    async (signal) => {
      const held: ServerResponse[] = [];
      await using site = await Site.open((_request, response) => void held.push(response));
      const running = start(script(ASKS), '-', '--out', out, { stdin: 'pipe' });
      running.child.stdin!.write(`${site.url}/1\n${site.url}/2\n`);
      await expect.poll(() => held.length, SLOW_START).toBe(2);
      expect(leased()).toBe(2);
      const { code, stderr } = await running.end(signal);
      expect(code).toBe(signal === 'SIGINT' ? 130 : 143);
      expect(stderr).toContain('Ended early: 0 fulfilled, 0 failed');
      expect(stderr).toContain('To continue, add --resume to the same command.');
      expect(leased()).toBe(0);
      await running.leavesNothing();
    },
  );

  it('exits with 1 when the service refuses, although stdin is open', async () => {
    const running = startClient(['map', 'nowhere', script(ASKS)], used.local, { stdin: 'pipe' });
    running.child.stdin!.write('a\n');
    const { code, stdout, stderr } = await running.ended;
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('With --out, a job can be resumed.');
    expect(stderr).toContain('nowhere');
  });
});

describe('at a service that records', () => {
  const LINK = 'https://replays.test/view?jwt=eyJhbGciOi.eyJzdWIi.c2ln&replay_id=r2';
  const OLD = { replay_id: 'r1', finished_at: '2026-01-01T00:00:00Z', replay_view_url: 'https://old.test' };
  const NEW = { replay_id: 'r2', replay_view_url: LINK };
  /** Takes long enough for a recording to start. */
  const SLOW = 'export default () => new Promise((resolve) => setTimeout(resolve, 500));';

  it('adds the link of its recording to each result with --replays record, and prints it at the end', async () => {
    const { service, sessionId } = await startService();
    service.script('start-replay', { status: 201, json: NEW });
    const finished = { ...NEW, finished_at: '2026-01-02T00:00:00Z' };
    service.script('replays', { status: 200, json: [OLD] }, { status: 200, json: [OLD, finished] });
    const { code, stderr } = await run(service, SLOW, '--replays', 'record', '--out', out);
    expect(code).toBe(0);
    expect(results()).toMatchObject([
      { input: 'a', sessionId, replays: [LINK] },
      { input: 'b', sessionId, replays: [LINK] },
    ]);
    expect(stderr).toMatch(/Done: 2 fulfilled, 0 failed, in [\d.]+ s\.\n$/);
    expect(stderr).toContain(`pooled-browser: session ${sessionId}: replay ${LINK}\n`);
    expect(stderr).not.toContain('old.test');
  });

  it('lists the recordings of its leases at the end, and releases a cleaned-up browser for reuse', async () => {
    const { service, sessionId } = await startService();
    service.script('replays', { status: 200, json: [OLD] }, { status: 200, json: [OLD, NEW] });
    const { code, stdout, stderr } = await run(
      service,
      "export default () => { throw new Error('no good'); };",
    );
    expect(code).toBe(1);
    expect(parse(stdout).map((result) => [result.sessionId, result.replays])).toEqual([
      [sessionId, undefined],
      [sessionId, undefined],
    ]);
    expect(stderr).toContain(`session ${sessionId}: replay ${LINK} (not finished yet)\n`);
    expect(service.of('start-replay')).toEqual([]);
    expect(service.of('release')[0]!.body).toEqual({ session_id: sessionId, reuse: true });
  });

  it('sends no request for recordings with --replays off, and destroys the browser with --release destroy', async () => {
    const { service, sessionId } = await startService();
    const { code, stderr } = await run(service, SLOW, '--replays', 'off', '--release', 'destroy');
    expect(code).toBe(0);
    expect(stderr).not.toContain('replay');
    expect(service.of('replays')).toEqual([]);
    expect(service.of('release')[0]!.body).toEqual({ session_id: sessionId, reuse: false });
  });

  it('quits at a second Ctrl-C, and sends the release again at the exit', async () => {
    const { service, sessionId } = await startService();
    service.script('release', () => {});
    const task = script("export default () => { console.log('at work'); return new Promise(() => {}); };");
    const running = startClient(['map', 'pool', ...LIBRARY, task, file('in.txt', 'a\n')], service.options);
    await running.prints(/at work/);
    running.child.kill('SIGINT');
    await running.prints(/Press Ctrl-C again to quit immediately\./);
    await expect.poll(() => service.released.length).toBeGreaterThan(0);
    const sent = service.released.length;
    expect(await running.insist(() => running.child.kill('SIGINT'))).toMatchObject({ code: 130 });
    // Another process sends the release, which may start after the exit.
    await expect.poll(() => service.released.length, SLOW_START).toBeGreaterThan(sent);
    expect(new Set(service.released)).toEqual(new Set([sessionId]));
  });

  it('releases a browser that is leased after Ctrl-C', async () => {
    const { service, sessionId, lent } = await startService();
    let grant!: () => void;
    service.script(
      'acquire',
      (response) => void (grant = () => reply(response, { status: 200, json: lent })),
    );
    const inputs = file('in.txt', 'a\n');
    const running = startClient(['map', 'pool', ...LIBRARY, script(SLOW), inputs], service.options);
    await expect.poll(() => service.of('acquire').length, SLOW_START).toBe(1);
    running.child.kill('SIGINT');
    await running.prints(/Press Ctrl-C again/);
    grant();
    const { code, stdout, stderr } = await running.ended;
    expect({ code, stdout }).toEqual({ code: 130, stdout: '' });
    expect(stderr).toContain('Ended early: 0 fulfilled, 0 failed');
    expect(service.released).toEqual([sessionId]);
  });

  /** A service with one real browser. */
  async function startService() {
    const service = await FakeService.start();
    const lent = await realSession(used.local);
    const sessionId = String(lent['session_id']);
    onTestFinished(async () => {
      await service.close();
      await used.pool.release(sessionId, { reuse: false });
    });
    service.script('acquire', { status: 200, json: lent });
    return { service, lent, sessionId };
  }

  function run(service: FakeService, task: string, ...args: string[]) {
    const inputs = file('in.txt', 'a\nb\n');
    const words = ['map', 'pool', ...LIBRARY, script(task), inputs, '--concurrency', '1', ...args];
    return startClient(words, service.options).ended;
  }
});

describe('progress', () => {
  it('prints its progress from time to time without a terminal', async () => {
    const held: ServerResponse[] = [];
    await using site = await Site.open(({ url }, response) => {
      if (url === '/ready') response.end();
      else held.push(response);
    });
    const task = 'export default async ({ input, signal }) => void (await fetch(input, { signal }));';
    const urls = [`${site.url}/ready`, `${site.url}/held`];
    const began = performance.now();
    const running = start(script(task), file('urls.txt', urls.join('\n')), '--concurrency', '1');
    // Until the second response, no more inputs are done.
    await running.prints(/pooled-browser: 1 of 2 done, 1 browser, [\d.]+\/s/);
    await expect.poll(() => held.length).toBe(1);
    held[0]!.end();
    const { code, stderr } = await running.ended;
    expect(code).toBe(0);
    expect(stderr).not.toContain('\x1b');
    // At most one line in three seconds.
    const most = (performance.now() - began) / 3000;
    expect(stderr.match(/done,/g)!.length).toBeLessThanOrEqual(most);
  });

  it.runIf(hasTerminals)('shows a bar at a terminal, and messages above it', async () => {
    const task = script("export default ({ input }) => console.log('at', input);");
    const running = startAtTerminal(
      ['map', 'test', ...LIBRARY, task, file('in.txt', 'a\nb\n'), '--out', out],
      used.local,
    );
    const { code, stdout } = await running.ended;
    expect(code).toBe(0);
    // oxlint-disable-next-line no-control-regex -- it finds control characters
    expect(stdout.replaceAll(/\x1b\[[\d;]*m/g, '')).toMatch(/\[=+\] 2 of 2 done/);
    expect(stdout).toMatch(/at a\r\n/);
    expect(stdout.trimEnd()).toMatch(
      /\n(\S*\[0G)?pooled-browser: Done: 2 fulfilled, 0 failed, in [\d.]+ s\.$/,
    );
  });
});

describe('refusals', () => {
  const ok = () => script('export default () => 1;');
  const inputs = () => file('in.txt', 'a\n');
  const usedUp = () => file('used.jsonl', '{}\n');

  it.each<[string, string, () => string[]]>([
    ['a script that is missing', 'The script missing.mjs does not exist.', () => ['missing.mjs', inputs()]],
    ['a script without a task', 'needs a function as its default export', () => [script(''), inputs()]],
    ['a script that fails', "can't be loaded: mine", () => [script("throw Error('mine')"), inputs()]],
    ['missing inputs', 'ENOENT', () => [ok(), 'missing.txt']],
    ['inputs that are a folder', 'is a folder', () => [ok(), folder]],
    ['--resume without --out', '--resume needs --out', () => [ok(), inputs(), '--resume']],
    ['--out with results', 'is not empty. Pass --resume', () => [ok(), inputs(), '--out', usedUp()]],
    [
      '--out in no folder',
      "--out /nope/x.jsonl can't be written: ENOENT",
      () => [ok(), inputs(), '--out', '/nope/x.jsonl'],
    ],
    ['--out that is a folder', 'EISDIR', () => [ok(), inputs(), '--out', folder]],
    ['--force without --resume', '--force needs --resume', () => [ok(), inputs(), '--force']],
    ['CSV without --out', '--format csv needs --out', () => [ok(), inputs(), '--format', 'csv']],
    ['--ordered with --out', 'cannot be used with', () => [ok(), inputs(), '--out', out, '--ordered']],
    [
      'BiDi with Playwright',
      'protocol',
      () => [ok(), inputs(), '--library', 'playwright', '--protocol', 'bidi'],
    ],
    ['no browsers', 'whole number, 1 or more', () => [ok(), inputs(), '--concurrency', '0']],
    ['a bad name', 'name', () => [ok(), inputs(), '--name', 'a b']],
  ])('refuses %s with exit code 2, before anything is leased', async (_what, message, args) => {
    const { granted } = used.local.stats();
    const { code, stdout, stderr } = await start(...args()).ended;
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^pooled-browser: /);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain('    at ');
    expect(used.local.stats().granted).toBe(granted);
  });

  it('refuses to resume a file that contains no results', async () => {
    const ended = await start(ok(), inputs(), '--out', usedUp(), '--resume').ended;
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toContain('line 1: this is not an outcome');
    expect(readFileSync(join(folder, 'used.jsonl'), 'utf8')).toBe('{}\n');
  });
});

interface Result {
  status: string;
  index: number;
  input: string;
  attempts: number;
  sessionId: string;
  replays?: string[];
  value?: unknown;
}

function start(...args: (string | ProgramOptions)[]) {
  const words = args.filter((word) => typeof word === 'string');
  const options = args.find((word) => typeof word === 'object');
  return startClient(['map', 'test', ...LIBRARY, ...words], used.local, options);
}

function script(source: string): string {
  return file('task.mjs', source);
}

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

function results(): Result[] {
  return parse(readFileSync(out, 'utf8'));
}

function parse(lines: string): Result[] {
  return lines
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Result);
}
