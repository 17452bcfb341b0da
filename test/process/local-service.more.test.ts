import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { savedFacts } from '../local/replays/support.js';
import { UNREACHABLE } from '../support/fake-service.js';
import { processesOf } from '../support/processes.js';
import { Site } from '../support/site.js';
import { start } from './support.js';

const leasing = (args: readonly string[], environment: Record<string, string> = {}) =>
  start('local', args, { BROWSER_POOL_BASE_URL: 'local', ...environment });

/** Runs the program until it ends. The leak check after this file finds what it left. */
async function run(args: readonly string[], environment: Record<string, string> = {}): Promise<string[]> {
  const { code, stdout } = await leasing(args, environment).ended;
  expect(code).toBe(0);
  return stdout.trim().split('\n');
}

const running = (name: string) =>
  processesOf(process.env['TMPDIR']!).filter(({ command }) => command.includes(name));

it('leases Chromium of this machine without a service, and ends', async () => {
  const lines = await run(['runs'], { BROWSER_POOL_LOCAL_SIZE: '2' });
  // Three runs at once on at most two browsers.
  expect(lines).toHaveLength(2);
  for (const line of lines) expect(line).toMatch(/^\w+ 42$/);
  await expect.poll(() => running('local-process')).toEqual([]);
});

it('starts no more browsers than leases need', async () => {
  const program = leasing(['hang'], { BROWSER_POOL_LOCAL_SIZE: '8' });
  await program.prints(/leased/);
  const browsers = () => running('--user-data-dir').filter(({ command }) => !command.includes('--type='));
  // A process that the browser is starting has the command of the browser at first.
  await expect.poll(browsers).toHaveLength(1);
  program.child.kill('SIGKILL');
  await expect.poll(() => running('--user-data-dir')).toEqual([]);
});

it.each(['SIGTERM', 'SIGINT'] as const)(
  'ends with a process that %s ends as without this library: no call fails before',
  async (signal) => {
    const program = leasing(['waits'], { BROWSER_POOL_LOCAL_SIZE: '2' });
    await program.prints(/waiting\nwaiting/);
    program.child.kill(signal);
    expect(await program.exit).toEqual([null, signal]);
    expect(program.stdout + program.stderr).toBe('waiting\nwaiting\n');
    await expect.poll(() => running('local-process')).toEqual([]);
  },
);

it('ends with the pool', async () => {
  expect(await run(['closed'])).toEqual(['local:mine', '42', '1']);
});

it('leaves recordings in the folder of the environment, whose links are files', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'recordings-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [session, link] = await run(['records'], { BROWSER_POOL_LOCAL_RECORDINGS: folder });
  const page = fileURLToPath(link!);
  expect(dirname(dirname(page))).toBe(folder);
  expect(savedFacts(page)).toMatchObject({ state: 'ready', sessionId: session });
});

it('is shared by all processes with the same owner, and ends with the owner', async () => {
  const owner = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 900_000)'], { stdio: 'ignore' });
  onTestFinished(() => void owner.kill());
  const args = ['shared', String(owner.pid)];
  const sessions = await Promise.all([run(args), run(args), run(args)]);
  expect(new Set(sessions.flat()).size).toBe(1);
  await expect.poll(() => running('local-process')).toHaveLength(1);
  owner.kill();
  await expect.poll(() => running('local-process')).toEqual([]);
});

it.each([
  ['nothing listens', undefined],
  ['another program listens', 404],
])(
  'is started anew if a process with the same id left a folder: %s at its address',
  async (_what, status) => {
    const other = await Site.open((_request, response) => void response.writeHead(status!).end());
    onTestFinished(() => other[Symbol.asyncDispose]());
    const { pid } = process;
    const folder = join(process.env['TMPDIR']!, `pooled-browser-${pid}-shared`);
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    mkdirSync(folder, { mode: 0o700 });
    const baseUrl = status === undefined ? UNREACHABLE : other.url;
    writeFileSync(join(folder, 'address.json'), JSON.stringify({ baseUrl, token: 'stale' }));
    const args = ['shared', String(pid)];
    const sessions = await Promise.all([run(args), run(args)]);
    expect(new Set(sessions.flat()).size).toBe(1);
    const services = running('local-process');
    expect(services).toHaveLength(1);
    // Its owner is this process, which does not end.
    process.kill(services[0]!.pid);
  },
);

it('is started three times at most if this process can not reach it, and the error says why', async () => {
  const [line] = await run(['unreachable', String(process.pid)]);
  expect(line).toMatch(
    /^LocalPoolError \w+: The local browsers were started 3 times, .*ECONNREFUSED.* allow connections to 127/,
  );
  const services = running('local-process');
  expect(services).toHaveLength(3);
  // Their owner is this process, which does not end.
  for (const { pid } of services) process.kill(pid);
});

it('explains what to do if there is no Chromium', async () => {
  const [line] = await run(['runs'], { CHROME_PATH: '/nowhere/chromium' });
  expect(line).toMatch(/^BrowserNotFoundError ERR_BROWSER_NOT_FOUND: .*\/nowhere\/chromium/);
});

it('the profile of a killed process is removed by the next one, and not while its browser runs', async () => {
  const profiles = () =>
    readdirSync(process.env['TMPDIR']!).filter((name) => /^pooled-browser-\w{6}$/.test(name));
  const open = async () => {
    const others = profiles();
    const program = start('embedded', ['hang']);
    await program.prints(/leased/);
    const profile = profiles().find((name) => !others.includes(name))!;
    const [browser] = running(`--user-data-dir=${join(process.env['TMPDIR']!, profile)}`);
    return { program, profile, browser: browser!.pid };
  };
  const killed = await open();
  // A browser ends soon after its process; this one takes longer.
  process.kill(-killed.browser, 'SIGSTOP');
  killed.program.child.kill('SIGKILL');
  await killed.program.exit;
  const second = await open();
  expect(profiles().toSorted()).toEqual([killed.profile, second.profile].toSorted());
  process.kill(-killed.browser, 'SIGKILL');
  await expect.poll(() => running(killed.profile)).toEqual([]);
  const third = await open();
  await expect.poll(() => profiles().toSorted()).toEqual([second.profile, third.profile].toSorted());
  for (const { program } of [second, third]) program.child.kill('SIGTERM');
  await Promise.all([second.program.exit, third.program.exit]);
});
