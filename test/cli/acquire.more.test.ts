import { chromium } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { FakeService, JWT, TOKEN, UNREACHABLE } from '../support/fake-service.js';
import { useLocalPool } from '../support/local.js';
import { processesOf } from '../support/processes.js';
import { SLOW_START } from '../support/program.js';
import { runHere, startClient } from './support.js';

describe('acquire', () => {
  const used = useLocalPool();
  const start = (...args: string[]) => startClient(['acquire', 'test', ...args], used.local);
  const leased = () => used.local.stats().leased;

  it('prints the addresses of the browser, keeps it leased, and destroys it at Ctrl-C', async () => {
    const held = start('--start-url', 'data:text/html,<title>Start</title>');
    const [, cdp] = await held.prints(/^cdp +(\S+)$/m);
    await held.prints(/^session +\w+$/m);
    await held.prints(/^webdriver +ws:\S+$/m);
    await held.prints(/^timeout +60 s/m);
    await held.prints(/destroys it after 60 s without a connection/);
    expect(leased()).toBe(1);
    const browser = await chromium.connectOverCDP(cdp!);
    expect(await browser.contexts()[0]!.pages()[0]!.title()).toBe('Start');
    await browser.close();
    expect(await held.end('SIGINT')).toMatchObject({ code: 0 });
    expect(held.stderr).toContain('Released: the browser is destroyed.');
    expect(leased()).toBe(0);
  });

  it('ends after --lifetime, with the reason', async () => {
    const { code, stderr } = await start('--lifetime', '2s').ended;
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/lifetime/);
    expect(stderr).toContain('Released: the browser is destroyed.');
    expect(leased()).toBe(0);
  });

  it('prints one line of JSON for the lease, and one for its end at SIGTERM', async () => {
    const held = start('--json', '--name', 'by-hand', '--tag', 'who=ada', '--tag', 'why=a=b');
    await held.prints(/acquired/);
    const { code, stdout } = await held.end('SIGTERM');
    expect(code).toBe(0);
    const lines = stdout.trim().split('\n');
    expect(lines.map((line) => JSON.parse(line) as object)).toEqual([
      {
        type: 'acquired',
        session: expect.objectContaining({
          cdp_ws_url: expect.stringContaining('jwt='),
          webdriver_ws_url: expect.stringContaining('jwt='),
          name: 'by-hand',
          tags: {
            who: 'ada',
            why: 'a=b',
            'pooled-browser-lease': expect.any(String) as string,
            'pooled-browser-owner': expect.any(String) as string,
          },
          timeout_seconds: 60,
        }),
      },
      { type: 'released', released: 'destroyed', replays: [], replayStatus: 'none' },
    ]);
  });

  it('is listed by leases, which ends the lease', async () => {
    const held = start('--name', 'mine');
    const [, id] = await held.prints(/^session +(\w+)$/m);
    const listed = await runHere(['leases', '--json'], used.local);
    const [lease] = JSON.parse(listed.stdout) as [{ age: number }];
    expect(lease).toMatchObject({ session: id, name: 'mine', pool: 'test', owner: { pid: held.child.pid } });
    expect(lease.age).toBeLessThan(600_000);
    const ended = await runHere(['leases', '--release', id!, '--yes'], used.local);
    expect(ended).toMatchObject({ code: 0, stdout: `${id}  ended\n` });
    expect(leased()).toBe(0);
    expect(await held.end('SIGINT')).toMatchObject({ code: 0 });
  });

  it('ends with its stdin with --until-eof, and releases the browser for reuse', async () => {
    const args = ['acquire', 'test', '--until-eof', '--release', 'reuse'];
    const held = startClient(args, used.local, { stdin: 'pipe' });
    await held.prints(/The browser is leased until stdin ends or Ctrl-C/);
    const { destroyed } = used.local.stats();
    held.child.stdin!.end('ignored text\n');
    expect(await held.ended).toMatchObject({ code: 0 });
    expect(held.stderr).toContain('Released: the browser is back in its pool.');
    expect(used.local.stats()).toMatchObject({ leased: 0, destroyed });
  });

  it('releases the browser when it is killed, with --release-on-crash, and prints secrets only on stdout', async () => {
    const held = start('--release-on-crash');
    await held.prints(/timeout/);
    expect(leased()).toBe(1);
    const commands = processesOf(held.folder).map(({ command }) => command);
    expect(commands.join('\n')).toContain('release-process');
    const { stdout, stderr } = await held.end('SIGKILL');
    const [jwt] = /eyJ[\w.-]+/.exec(stdout)!;
    for (const text of [...commands, stderr]) expect(text).not.toContain(jwt);
    for (const text of [...commands, stderr, stdout]) expect(text).not.toContain(used.local.token);
    await expect.poll(leased).toBe(0);
  });

  it('releases the browser at SIGHUP when the reader of its output is gone', async () => {
    const held = start('--json');
    await held.prints(/acquired/);
    held.child.stdout!.destroy();
    await held.end('SIGHUP');
    expect(leased()).toBe(0);
  });
});

it('prints once that it waits, and fails if no browser becomes available in time', async () => {
  await using service = await FakeService.start();
  service.script('acquire', { status: 204 });
  const args = ['acquire', 'pool', '--acquire-timeout', '6s'];
  const { code, stdout, stderr } = await runHere(args, service.options);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr.match(/No browser is free in pool pool\. Retrying for up to 6 s in total\./g)).toHaveLength(
    1,
  );
  expect(stderr).toMatch(/No browser became available in pool "?pool"? within 6/);
});

it('ends early for a service that was never reached', async () => {
  // No other test tries this address.
  const service = { baseUrl: UNREACHABLE.replace(/\d+$/, '3'), token: TOKEN };
  const { code, stderr } = await runHere(['acquire', 'pool', '--unreachable-timeout', '2s'], service);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^pooled-browser: .*ECONNREFUSED.* Retrying\.\n.*No connection was opened for 2 s\./,
  );
});

it('quits at a second Ctrl-C, and sends the release again at the exit', async () => {
  await using service = await FakeService.start();
  service.script('release', () => {});
  const held = startClient(['acquire', 'pool'], service.options);
  await held.prints(/timeout/);
  held.child.kill('SIGINT');
  await expect.poll(() => service.released.length).toBeGreaterThan(0);
  const sent = service.released.length;
  expect(await held.insist(() => held.child.kill('SIGINT'))).toMatchObject({ code: 130 });
  // Another process sends the release, which may start after the exit.
  await expect.poll(() => service.released.length, SLOW_START).toBeGreaterThan(sent);
  expect(new Set(service.released)).toEqual(new Set(['session-1']));
});

it('fails with a message when the browser could not be released', async () => {
  await using service = await FakeService.start();
  service.script('release', { status: 403, json: { code: 'forbidden', message: 'not yours' } });
  const held = startClient(['acquire', 'pool'], service.options);
  await held.prints(/timeout/);
  const { code, stderr } = await held.end('SIGINT');
  expect(code).toBe(1);
  expect(stderr).toMatch(/Session session-\d+ of pool pool could not be released/);
  expect(stderr).not.toContain(JWT);
});
