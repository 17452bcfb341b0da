import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { WebSocketServer } from 'ws';
import { FakeService, JWT, session } from '../support/fake-service.js';
import { useLocalPool } from '../support/local.js';
import { PlayedBrowser } from '../support/played-browser.js';
import { processesOf, variablesOfProcess } from '../support/processes.js';
import { startProgram, variablesOf } from '../support/program.js';
import { Site } from '../support/site.js';
import { hasTerminals, runHere, startAtTerminal, startCli, startClient } from './support.js';

/** A command that prints when it runs, and then waits for signals: the shell must not wait for a child. */
const waits = (traps: string) => ['sh', '-c', `${traps} echo runs; while :; do sleep 0.1; done`];

/** Not executable. */
const FILE = resolve('package.json');

it('runs a command with a browser of this machine, and gives no secret to any other process', async () => {
  const script =
    'echo $BROWSER_POOL_CDP_WS_URL; echo "$STEEL_API_KEY-$KERNEL_API_KEY-$REDIS_URL-$MINE"; read line';
  const args = ['exec', 'any', '--base-url', 'local', '--release-on-crash', '--pass-env', 'KERNEL_API_KEY'];
  const secrets = { STEEL_API_KEY: 'canary-1', KERNEL_API_KEY: 'canary-2', REDIS_URL: 'redis://:canary-3@h' };
  const exec = startCli(
    [...args, '--', 'sh', '-c', script],
    { ...secrets, MINE: 'canary-4' },
    { stdin: 'pipe' },
  );
  await exec.prints(/canary/);
  const others = processesOf(exec.folder).filter(
    ({ pid, command }) => pid !== exec.child.pid && !command.startsWith('sh'),
  );
  exec.child.stdin!.end('\n');
  const { code, stdout, stderr } = await exec.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^ws:\/\/127\.0\.0\.1:\d+\/browsers\/\w+\/cdp\?jwt=\S+\n-canary-2--canary-4\n$/);
  // The process that releases, that of the local pool, and those of Chromium.
  const commands = others.map(({ command }) => command).join('\n');
  for (const part of ['release-process', 'local-process', 'user-data-dir']) expect(commands).toContain(part);
  for (const other of others) expect(variablesOfProcess(other)).not.toContain('canary');
  await exec.leavesNothing();
});

describe('exec', () => {
  // A command may start slowly, and must connect within this time.
  const used = useLocalPool({
    pools: [{ name: 'test', size: 1, timeoutSeconds: 300 }],
    args: ['--host-resolver-rules=MAP localhost 127.0.0.1:9'],
  });
  const start = (...args: string[]) => startClient(['exec', 'test', ...args], used.local);
  const leased = () => used.local.stats().leased;

  it('gives the command a browser in its environment and at --local-endpoint, while it runs, and exits like it', async () => {
    const script = `
      const { BROWSER_POOL_CDP_WS_URL: cdp, BROWSER_POOL_WEBDRIVER_WS_URL: bidi } = process.env;
      const { BROWSER_POOL_LOCAL_CDP_WS_URL: local, BROWSER_POOL_SESSION_ID: id } = process.env;
      const { chromium } = require('playwright-core');
      (async () => {
        const browsers = [];
        for (const url of [cdp, local, process.argv[1]]) browsers.push(await chromium.connectOverCDP(url));
        const sums = browsers.map((browser) => browser.contexts()[0].pages()[0].evaluate('1 + 1'));
        console.log(JSON.stringify({ sums: await Promise.all(sums), bidi, id, local, argument: process.argv[1] }));
        // The other browsers are left open.
        await browsers[1].close();
        process.exit(7);
      })();`;
    const { code, stdout, stderr } = await start('--local-endpoint', '--', 'node', '-e', script, '{endpoint}')
      .ended;
    expect({ code, stderr }).toEqual({ code: 7, stderr: '' });
    const { local, ...seen } = JSON.parse(stdout) as { local: string };
    expect(seen).toEqual({
      sums: [2, 2, 2],
      bidi: expect.stringContaining('/session?jwt='),
      id: expect.any(String),
      argument: local,
    });
    await expect(fetch(local.replace('ws:', 'http:'))).rejects.toThrow('fetch failed');
    expect(leased()).toBe(0);
  });

  it('releases the browser at the end of --lifetime: the command loses it, and has its own exit code', async () => {
    const { destroyed } = used.local.stats();
    const script = `
      const { WebSocket } = require('ws');
      const socket = new WebSocket(process.env.BROWSER_POOL_CDP_WS_URL);
      socket.on('close', (code, reason) => process.exit(code === 1001 && /lifetime of 10 s/.test(reason) ? 3 : 4));`;
    // Nothing says that the command leaves the browser alone afterwards.
    const exec = start('--lifetime', '10s', '--release', 'reuse', '--', 'node', '-e', script);
    const { code, stderr } = await exec.ended;
    expect(code).toBe(3);
    expect(stderr).toMatch(/The lease of session \w{32} ends in [45](\.\d)? s \(--lifetime\)\./);
    expect(stderr).toContain('The lease reached its lifetime of 10 s');
    expect(used.local.stats()).toMatchObject({ leased: 0, destroyed: destroyed + 1 });
  });

  it('says at the end of --lifetime why a command with --lazy is disconnected', async () => {
    const script = `
      const { WebSocket } = require('ws');
      const socket = new WebSocket(process.env.BROWSER_POOL_CDP_WS_URL);
      socket.on('close', (code, reason) => console.log(code, String(reason)));`;
    const { code, stdout } = await start('--lazy', '--lifetime', '5s', '--', 'node', '-e', script).ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(/^1001 The lease reached its lifetime of 5 s/);
  });

  it.each([[[]], [['--lazy']]])(
    'answers requests of the browser to exposed hosts: exec %j',
    async (flags) => {
      await using site = await Site.open((_request, response) => response.end('on this machine'));
      const { href, host } = new URL(site.as('localhost'));
      new WebSocketServer({ server: site.server }).on('connection', (socket) =>
        socket.send('by a WebSocket'),
      );
      const script = `
      const puppeteer = require('puppeteer-core');
      (async () => {
        const browser = await puppeteer.connect({ browserWSEndpoint: process.env.BROWSER_POOL_CDP_WS_URL });
        const page = await browser.newPage();
        for (let visit = 0; visit < 2; visit++) await page.goto('${href}');
        console.log(await page.evaluate('document.body.innerText'));
        console.log(await page.evaluate(() => new Promise((resolve) => {
          const socket = new WebSocket('ws://${host}/');
          socket.onmessage = ({ data }) => socket.close() ?? resolve(data);
          socket.onclose = ({ code }) => resolve(code);
        })));
        await browser.disconnect();
      })();`;
      const { code, stdout, stderr } = await start(
        '--expose-network',
        host,
        ...flags,
        '--',
        'node',
        '-e',
        script,
      ).ended;
      expect({ code, stdout, stderr }).toEqual({
        code: 0,
        stdout: 'on this machine\nby a WebSocket\n',
        stderr: `pooled-browser: The browser reaches ${host} through this machine.\n`,
      });
      expect(leased()).toBe(0);
    },
  );

  it('leaves stdin, stdout, stderr and all arguments to the command, and prints nothing itself', async () => {
    const command = ['sh', '-c', 'cat; echo "$1"; echo err >&2', 'sh', '--release-on-crash'];
    const args = ['exec', 'test', '--release', 'reuse', '--', ...command];
    const cat = startClient(args, used.local, { stdin: 'pipe' });
    cat.child.stdin!.end('through\n');
    expect(await cat.ended).toEqual({ code: 0, stdout: 'through\n--release-on-crash\n', stderr: 'err\n' });
  });

  it('exits like its command when the reader of stdout is gone', async () => {
    const line = '("$0" dist/cli/main.js exec test -- yes; echo "code $?" >&2) | head -1';
    const args = ['-c', line, process.execPath];
    const piped = startProgram(args, variablesOf(used.local), { command: 'sh' });
    expect(await piped.ended).toEqual({ code: 0, stdout: 'y\n', stderr: 'code 141\n' });
    expect(leased()).toBe(0);
  });

  it.each([
    ['SIGINT', "trap 'echo got; exit 5' INT;", 5, 'runs\ngot\n'],
    ['SIGTERM', '', 143, 'runs\n'],
  ] as const)('passes %s on to its command, and exits like it', async (signal, traps, code, stdout) => {
    const running = start('--', ...waits(traps));
    await running.prints(/runs/);
    expect(leased()).toBe(1);
    expect(await running.end(signal)).toMatchObject({ code, stdout });
    expect(leased()).toBe(0);
  });

  it('releases the browser when it is killed, with --release-on-crash, and puts no secret into arguments', async () => {
    // Waits for a line that never comes. After the kill, the end of its input ends it.
    const command = ['sh', '-c', 'echo runs; read line', 'sh', '{endpoint}'];
    const args = ['exec', 'test', '--release-on-crash', '--local-endpoint', '--', ...command];
    const running = startClient(args, used.local, { stdin: 'pipe' });
    await running.prints(/runs/);
    const commands = processesOf(running.folder).map((found) => found.command);
    expect(leased()).toBe(1);
    await running.end('SIGKILL');
    await expect.poll(leased).toBe(0);
    expect(commands.join('\n')).toMatch(/exec test[^]*release-process|release-process[^]*exec test/);
    expect(commands.join('\n')).toMatch(/ ws:\/\/127\.0\.0\.1:\d+\/[\w-]{36}/);
    for (const words of commands) expect(words).not.toMatch(/jwt|eyJ/);
    for (const words of commands) expect(words).not.toContain(used.local.token);
  });

  it.runIf(hasTerminals)('delivers Ctrl-C at a terminal to its command once', async () => {
    const running = startAtTerminal(
      ['exec', 'test', '--', ...waits("trap 'echo got; n=$((n+1))' INT; trap 'exit 9' TERM;")],
      used.local,
    );
    await running.prints(/runs/);
    running.child.stdin!.write('\x03');
    await running.prints(/got/);
    // A second signal would arrive within this time.
    await sleep(500);
    expect(running.stdout.match(/got/g)).toHaveLength(1);
    expect(leased()).toBe(1);
    const press = () => running.child.stdin!.write('\x03');
    press();
    // Rarely: a third signal could arrive while the program ends, and change its exit code.
    expect(await running.insist(press, 30_000)).toMatchObject({ code: 137 });
    expect(leased()).toBe(0);
  });
});

describe('exec --playwright', () => {
  const used = useLocalPool({
    pools: [{ name: 'test', size: 2 }],
    args: ['--host-resolver-rules=MAP localhost 127.0.0.1:9'],
  });

  it('runs an unmodified suite, a lease for each worker, and prints the links to the recordings in the end', async () => {
    const suite = ['node_modules/@playwright/test/cli.js', 'test', '-c', 'test/fixtures/suites/unmodified'];
    const args = ['exec', 'test', '--playwright', '--replays', 'record', '--', 'node', ...suite];
    const exec = startClient(args, used.local);
    const { code, stderr } = await exec.ended;
    const { suites } = JSON.parse(readFileSync(join(exec.folder, 'report.json'), 'utf8')) as Report;
    const tests = suites[0]!.specs.flatMap((spec) => spec.tests);
    const of = (project: string) => tests.filter(({ projectName }) => projectName === project);
    expect(of('chromium').map(({ status }) => status)).toEqual(['expected', 'expected', 'expected']);
    for (const { results } of of('chromium'))
      expect(results[0]!.attachments.map(({ name }) => name).toSorted()).toEqual(['screenshot', 'trace']);
    // Never answered with Chromium.
    expect(of('firefox')[0]!.results[0]!.errors[0]!.message).toMatch(
      /A pool leases Chromium, and the client asks for "firefox"/,
    );
    expect(code).toBe(1);
    expect(stderr).toMatch(/^(pooled-browser: replay http:\S+ \(while the pool runs\)\n){2,}.*\n$/);
    expect(stderr).toMatch(/pooled-browser: \d browsers leased from test, all were released\.\n$/);
    expect(used.local.stats().leased).toBe(0);
    const ofRunner = /^(playwright-transform-cache-\d+|report\.json|results)$/;
    expect(exec.leftovers().filter((name) => !ofRunner.test(name))).toEqual([]);
  });

  it('says once what to do instead of --headed and a channel, which have no effect, and runs the suite', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'suite-'));
    const config = join(folder, 'playwright.config.mjs');
    const suite = {
      testDir: resolve('test/fixtures/suites/unmodified'),
      testMatch: '*.suite.ts',
      workers: 2,
    };
    const use = { channel: 'chrome', locale: 'de-DE' };
    writeFileSync(
      config,
      `export default ${JSON.stringify({ ...suite, fullyParallel: true, outputDir: join(folder, 'results'), use })};`,
    );
    const run = ['node', 'node_modules/@playwright/test/cli.js', 'test', '-c', config, '--headed'];
    const exec = startClient(['exec', 'test', '--playwright', '--', ...run], used.local);
    const { code, stdout, stderr } = await exec.ended;
    expect(code, stdout + stderr).toBe(0);
    expect(stderr.match(/asks for windows .*pooled-browser exec local --headful --playwright/g)).toHaveLength(
      1,
    );
    expect(stderr.match(/asks for the channel chrome, .*CHROME_PATH/g)).toHaveLength(1);
  });

  it('gives any client its address, also in the arguments, with hosts of this machine, and unsets the variables of an outer exec', async () => {
    await using site = await Site.open((_request, response) => response.end('on this machine'));
    const { href, host } = new URL(site.as('localhost'));
    const script = `
      const { PW_TEST_CONNECT_WS_ENDPOINT: url, BROWSER_POOL_CDP_WS_URL: outer } = process.env;
      require('playwright-core').chromium.connect(process.argv[1]).then(async (browser) => {
        const page = await browser.newPage();
        await page.goto('${href}');
        const text = await page.innerText('body');
        const refused = await page.goto('http://other.localhost:8080').catch(({ message }) => /ERR_\\w+/.exec(message)[0]);
        console.log(JSON.stringify([url === process.argv[1], outer, text, refused]));
        process.exit(3);
      });`;
    vi.stubEnv('BROWSER_POOL_CDP_WS_URL', 'ws://outer.test');
    const limits = ['--expose-network', host, '--allow-hosts', 'example.test'];
    const args = ['exec', 'test', '--playwright', ...limits, '--', 'node', '-e', script, '{endpoint}'];
    const { code, stdout, stderr } = await startClient(args, used.local).ended;
    expect({ code, stdout }).toEqual({
      code: 3,
      stdout: '[true,null,"on this machine","ERR_PROXY_CONNECTION_FAILED"]\n',
    });
    expect(stderr).toContain(`The browser reaches ${host} through this machine.`);
    expect(used.local.stats().leased).toBe(0);
  });
});

interface Report {
  suites: {
    specs: {
      tests: {
        projectName: string;
        status: string;
        results: { attachments: { name: string }[]; errors: { message: string }[] }[];
      }[];
    }[];
  }[];
}

describe('exec, at a service with a script,', () => {
  let service: FakeService;
  beforeEach(async () => {
    service = await FakeService.start();
    onTestFinished(() => service.close());
  });
  /** In this process: what the command prints is not seen. */
  const run = (...args: string[]) => runHere(['exec', 'pool', ...args], service.options);
  const lend = (fields: object) => service.script('acquire', { status: 200, json: session({ ...fields }) });

  it.each([
    ['does not exist', 127, ['no-such-command'], 'no-such-command: no such command'],
    ['is not a program', 126, [FILE], `${FILE}: the command can't be started`],
    ['is ended by a signal', 139, ['sh', '-c', 'kill -SEGV $$'], ''],
  ])(
    'exits like a shell when the command %s, and releases the browser',
    async (_what, code, command, message) => {
      const ended = await run('--', ...command);
      expect(ended).toMatchObject({ code, stdout: '' });
      expect(ended.stderr).toMatch(message === '' ? /^$/ : /^pooled-browser: /);
      expect(ended.stderr).toContain(message);
      expect(service.released).toEqual(['session-1']);
    },
  );

  it('keeps the exit code of its command, and prints recordings of this lease and a failed release on stderr', async () => {
    const link = 'https://replays.test/view?jwt=eyJhbGciOi.eyJzdWIi.c2ln&replay_id=r2';
    const old = { replay_id: 'r1', finished_at: '2026-01-01T00:00:00Z', replay_view_url: 'https://old.test' };
    const lists = [[old], [old, { replay_id: 'r2', replay_view_url: link }]];
    service.script('replays', ...lists.map((json) => ({ status: 200, json })));
    service.script('release', { status: 403, json: { code: 'forbidden', message: 'not yours' } });
    const { code, stderr } = await run('--', 'sh', '-c', 'exit 4');
    expect(code).toBe(4);
    const lines = stderr.trimEnd().split('\n').toSorted();
    expect(lines).toEqual([
      expect.stringMatching(/^pooled-browser: Session session-1 of pool pool could not be released/),
      `pooled-browser: replay ${link} (not finished yet)`,
    ]);
    expect(service.of('release')[0]!.body).toEqual({ session_id: 'session-1', reuse: false });
  });

  it('sends no request for recordings with --replays off', async () => {
    const quiet = { code: 0, stdout: '', stderr: '' };
    expect(await run('--replays', 'off', '--release', 'reuse', '--', 'true')).toEqual(quiet);
    expect(service.of('replays')).toEqual([]);
    expect(service.of('release')[0]!.body).toEqual({ session_id: 'session-1', reuse: true });
  });

  it('refuses a WebSocket URL that would send its secret without encryption', async () => {
    lend({ cdp_ws_url: 'ws://far.test/?jwt=secret-1234' });
    const { code, stdout, stderr } = await run('--', 'env');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain("The session's CDP URL is not encrypted (ws) and leaves this machine");
    expect(stderr).not.toContain('secret-1234');
    expect(service.released).toEqual(['session-1']);
  });

  it('closes the local endpoint for a client when the browser is unreachable', async () => {
    const script = `
      const socket = new (require('ws'))(process.argv[1]);
      socket.on('close', (code, reason) => process.exit(String(reason) === 'The browser could not be reached' ? 5 : 1));`;
    expect(await run('--local-endpoint', '--', 'node', '-e', script, '{endpoint}')).toMatchObject({
      code: 5,
    });
  });

  it('gives the command the browser to which hosts are exposed, where a WebSocket of its own would be another lease', async () => {
    await using browser = await PlayedBrowser.start();
    browser.onText = (text, client) => {
      const { id, sessionId } = JSON.parse(text) as { id: number; sessionId?: string };
      client.send(JSON.stringify({ id, sessionId, result: { sessionId: 'client', targetInfos: [] } }));
    };
    const script = `
      const socket = new (require('ws'))(process.env.BROWSER_POOL_CDP_WS_URL);
      socket.on('open', () => process.exit(5));`;
    const browserless = ['--service', 'browserless', '--base-url', browser.url.replace('ws', 'http')];
    const args = ['exec', 'any', ...browserless, '--expose-network', 'localhost:1'];
    expect(await runHere([...args, '--', 'node', '-e', script])).toMatchObject({ code: 5 });
    expect(browser.dialled).toBe(1);
  });

  it('unsets the variables of an outer exec', async () => {
    vi.stubEnv('BROWSER_POOL_LIVE_VIEW_URL', 'https://outer.test');
    vi.stubEnv('BROWSER_POOL_LOCAL_CDP_WS_URL', 'ws://127.0.0.1:1/outer');
    const file = join(mkdtempSync(join(tmpdir(), 'env-')), 'env');
    const variables = async () => {
      await run('--', 'sh', '-c', 'env > "$0"', file);
      return readFileSync(file, 'utf8');
    };
    const shown = await variables();
    expect(shown).toContain(`BROWSER_POOL_CDP_WS_URL=ws://127.0.0.1:1/cdp?jwt=${JWT}\n`);
    expect(shown).not.toContain('outer');
    lend({ browser_live_view_url: 'https://live.test' });
    expect(await variables()).toContain('BROWSER_POOL_LIVE_VIEW_URL=https://live.test/\n');
    // The command may open it.
    for (const browser_live_view_url of ['file:///etc/passwd', 'javascript:alert()', 'https://a\0b']) {
      lend({ browser_live_view_url });
      expect(await variables()).not.toContain('LIVE_VIEW_URL');
    }
  });
});
