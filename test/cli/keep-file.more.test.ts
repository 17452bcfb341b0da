import { mkdtempSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { expect, it } from 'vitest';
import { titled, useLocalPool } from '../support/local.js';
import { variablesOf, type Program } from '../support/program.js';
import { expectRefusal, startCli } from './support.js';

const SECRET = 'a-secret-of-the-user_0123456789';
const used = useLocalPool({ pools: [{ name: 'test', size: 2, timeoutSeconds: 300 }] });
const leased = () => used.local.stats().leased;

function start(file: string, { port = 0, secret = SECRET, lifetime = '10m' } = {}): Program {
  const args = ['proxy', 'test', '--port', `${port}`, '--keep-file', file, '--lifetime', lifetime];
  const variables = { ...variablesOf(used.local), BROWSER_POOL_PROXY_SECRET: secret };
  return startCli(args, variables);
}

const newFile = () => join(mkdtempSync(join(tmpdir(), 'k-')), 'kept.json');

async function addressOf(proxy: Program): Promise<string> {
  return (await proxy.prints(/Serving pool \S+ at (\S+)\n/))[1]!;
}

async function idAt(url: string): Promise<string> {
  const { sessionId } = (await (await fetch(`${url}/lease`)).json()) as { sessionId: string };
  return sessionId;
}

it.each(['SIGTERM', 'SIGKILL'] as const)(
  'finds a browser with a name again after %s, as it was and at the same address',
  async (signal) => {
    const file = newFile();
    const first = start(file);
    const url = await addressOf(first);
    expect(new URL(url).pathname).toBe(`/${SECRET}`);
    const client = await chromium.connectOverCDP(`${url}/alice`);
    await client.contexts()[0]!.pages()[0]!.goto(titled('of Alice'));
    const id = await idAt(`${url}/alice`);
    const text = readFileSync(file, 'utf8');
    expect(text).toContain(id);
    // No URL, no JWT, no token, no secret.
    expect(text).not.toMatch(/:\/\/|eyJ/);
    expect(text).not.toContain(used.local.token);
    expect(text).not.toContain(SECRET);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await first.end(signal);
    await client.close();
    expect(leased()).toBe(1);

    const second = start(file, { port: Number(new URL(url).port) });
    expect(await addressOf(second)).toBe(url);
    const again = await chromium.connectOverCDP(`${url}/alice`);
    expect(await again.contexts()[0]!.pages()[0]!.title()).toBe('of Alice');
    expect(await idAt(`${url}/alice`)).toBe(id);
    expect(leased()).toBe(1);
    await again.close();
    await second.end('SIGTERM');
    // Nobody comes again: this proxy only releases.
    const last = startCli(
      ['proxy', 'test', '--port', '0', '--keep', '100ms', '--keep-file', file, '--lifetime', '10m'],
      variablesOf(used.local),
    );
    await addressOf(last);
    await expect.poll(leased, { timeout: 20_000 }).toBe(0);
    expect(await last.end('SIGTERM')).toMatchObject({ code: 0 });
    expect(JSON.parse(readFileSync(file, 'utf8')).browsers).toEqual([]);
  },
);

it('refuses a weak secret without showing it, and --keep-file without --lifetime', async () => {
  const weak = await start(newFile(), { secret: 'too-short' }).ended;
  expectRefusal(weak, 'BROWSER_POOL_PROXY_SECRET must have at least 16 characters');
  expect(weak.stderr).not.toContain('too-short');
  const endless = startCli(['proxy', 'test', '--keep-file', newFile()], variablesOf(used.local));
  expectRefusal(await endless.ended, '--keep-file needs the option lifetime (--lifetime)');
});

it('gives a program of exec neither the secret of the proxy nor an address with it', async () => {
  const print = 'console.log(process.argv[1], process.env.BROWSER_POOL_PROXY_SECRET)';
  const args = ['exec', 'test', '--lazy', '--', process.execPath, '-e', print, '{endpoint}'];
  const variables = { ...variablesOf(used.local), BROWSER_POOL_PROXY_SECRET: SECRET };
  const { code, stdout } = await startCli(args, variables).ended;
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ws:\/\/127\.0\.0\.1:\d+\/\S+ undefined\n$/);
  expect(stdout).not.toContain(SECRET);
});
