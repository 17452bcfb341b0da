import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { chromium } from 'playwright-core';
import { FakeService } from '../support/fake-service.js';
import { expectRefusal, runHere, startClient } from './support.js';

/** A service without money, so that a list goes on to this machine. */
async function withoutMoney(): Promise<FakeService> {
  const service = await FakeService.start();
  service.script('acquire', { status: 402, json: { code: 'payment_required', message: 'no credits' } });
  return service;
}

const NEXT = /402.*no credits.*The next pool is asked: local\./;
const PRINTS_SUM = `
  const { chromium } = require('playwright-core');
  chromium.connectOverCDP(process.env.BROWSER_POOL_LOCAL_CDP_WS_URL).then(async (browser) => {
    console.log('sum', await browser.contexts()[0].pages()[0].evaluate('1 + 1'));
    await browser.close();
  });`;

it.each([['--local-endpoint'], ['--lazy']])(
  'exec %s goes on to the local pool, says why, and leaves nothing',
  async (flag) => {
    await using service = await withoutMoney();
    const exec = startClient(['exec', 'shop,local', flag, '--', 'node', '-e', PRINTS_SUM], service.options);
    const { code, stdout, stderr } = await exec.ended;
    expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: 'sum 2\n' });
    expect(stderr).toMatch(NEXT);
    await exec.leavesNothing();
  },
);

it('map takes the list of BROWSER_POOL', async () => {
  await using service = await withoutMoney();
  const folder = mkdtempSync(join(tmpdir(), 'pools-'));
  const [task, inputs] = [join(folder, 'task.mjs'), join(folder, 'inputs.txt')];
  writeFileSync(task, 'export default ({ input, page }) => page.evaluate(input);');
  writeFileSync(inputs, '1 + 1\n2 + 2\n');
  vi.stubEnv('BROWSER_POOL', 'shop,local');
  const { code, stdout, stderr } = await runHere(
    ['map', task, inputs, '--concurrency', '1'],
    service.options,
  );
  expect(code, stderr).toBe(0);
  expect(
    stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { value: number }).value),
  ).toEqual([2, 4]);
  expect(stderr).toMatch(NEXT);
});

it('the proxy, too, for each of its browsers', async () => {
  await using service = await withoutMoney();
  const proxy = startClient(['proxy', 'shop,local', '--port', '0', '--json'], service.options);
  const [, url] = await proxy.prints(/"url":"([^"]+)"/);
  for (const path of ['', '/a-name']) {
    await using browser = await chromium.connectOverCDP(url! + path);
    expect(await browser.contexts()[0]!.pages()[0]!.evaluate('1 + 1')).toBe(2);
  }
  proxy.child.kill('SIGTERM');
  const { stderr } = await proxy.ended;
  expect(stderr).toMatch(NEXT);
  await proxy.leavesNothing();
});

it('doctor checks each pool of a list', async () => {
  await using service = await withoutMoney();
  const args = ['doctor', 'shop,local', '--acquire-timeout', '30s', '--json'];
  const { code, stdout } = await runHere(args, service.options);
  const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: Record<string, unknown>[] };
  expect({ code, ok }).toEqual({ code: 1, ok: false });
  const of = (pool: string) =>
    Object.fromEntries(
      checks.filter((one) => one['pool'] === pool).map((one) => [one['check'], one['status']]),
    );
  expect(of('shop')).toMatchObject({ token: 'ok', lease: 'failed', 'playwright cdp': 'skipped' });
  expect(of('local')).toMatchObject({ token: 'ok', lease: 'ok', 'playwright cdp': 'ok' });
});

it('refuses a list where one pool is meant, and what names no pool, before anything is sent', async () => {
  await using service = await withoutMoney();
  const refused = async (message: string, ...args: string[]) =>
    expectRefusal(await runHere(args, service.options), message);
  await refused(
    'This command takes one pool, not shop,local. Pass its name.',
    'flush',
    'shop,local',
    '--yes',
  );
  await refused('This command takes one pool, not shop,local. Pass its name.', 'leases', 'shop,local');
  await refused('browsers of this machine end with the program', 'flush', 'local', '--yes');
  await refused('stel:a names no service', 'acquire', 'shop,stel:a');
  await refused('STEEL_API_KEY', 'acquire', 'shop,steel:spare');
  expect(service.requests).toEqual([]);
});
