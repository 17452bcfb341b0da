import { resolve } from 'node:path';
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { reply } from '../features/handoff/support.js';
import { FakeService } from '../support/fake-service.js';
import { titled, useLocalPool } from '../support/local.js';
import { startProgram, variablesOf } from '../support/program.js';
import { Agent } from './mcp-agent.js';
import { expectRefusal, installWithoutLibraries, startCli, startClient } from './support.js';

const used = useLocalPool({ pools: [{ name: 'test', size: 2, timeoutSeconds: 300 }] });
const leased = () => used.local.stats().leased;

it('has exactly three tools, which a host without a lease lists', async () => {
  await using agent = await Agent.lease(used.local);
  const { tools } = await agent.client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(['lease_browser', 'lease_status', 'release_browser']);
  expect(agent.client.getInstructions()).toContain('lease_browser');
  expect(leased()).toBe(0);
});

it('leases a browser that Playwright and Puppeteer drive one after the other, extends the lease, and releases it', async () => {
  await using agent = await Agent.lease(used.local);
  const { content } = await agent.call('lease_browser', { name: 'main', lifetime: '5m' });
  expect(content).toMatchObject({
    name: 'main',
    remaining: '5 minutes',
    session: expect.stringMatching(/^\w{32}$/),
  });
  expect(content.cdpUrl).toMatch(/^ws:\/\/127\.0\.0\.1:\d+\/[\w-]{36}\/main$/);
  const first = await chromium.connectOverCDP(content.cdpUrl);
  await first.contexts()[0]!.pages()[0]!.goto(titled('a page that stays'));
  await first.close();
  const second = await puppeteer.connect({ browserWSEndpoint: content.cdpUrl });
  const [page] = await second.pages();
  expect(await page!.title()).toBe('a page that stays');
  await second.disconnect();

  const { leases } = (await agent.call('lease_status', { name: 'main', extend: '4m' })).content;
  expect(leases).toMatchObject([{ name: 'main', cdpUrl: content.cdpUrl, session: content.session }]);
  // A part of a minute has passed.
  expect(leases[0]!.remaining).toMatch(/^(9|8\.\d) minutes$/);
  expect(Date.parse(leases[0]!.end)).toBeGreaterThan(Date.parse(content.end));
  const beyond = (await agent.call('lease_status', { name: 'main', extend: 1e9 })).content;
  expect(Number.parseFloat(beyond.leases[0]!.remaining)).toBeLessThanOrEqual(120);
  expect(beyond).toMatchObject({ notice: expect.stringContaining('latest time') as string });
  expect(leased()).toBe(1);
  expect((await agent.call('release_browser', { name: 'main' })).content).toEqual({
    name: 'main',
    released: 'reused',
    replays: [],
  });
  expect(leased()).toBe(0);
  expect((await agent.call('lease_status')).content).toEqual({ leases: [] });
  await expect(chromium.connectOverCDP(content.cdpUrl)).rejects.toThrow(/404[^]*Call the tool lease_browser/);
  expect(leased()).toBe(0);
  for (const output of [agent.messages, agent.stderr]) {
    expect(output).toContain('main');
    expect(output).not.toContain(used.local.token);
    expect(output).not.toContain('jwt');
  }
});

it('asks for a person with an address that never answers: the link is on stderr and in the log of the host', async () => {
  await using agent = await Agent.lease(used.local);
  const { content } = await agent.call('lease_browser', { name: 'main' });
  const request = { method: 'POST', headers: { 'content-type': 'application/json' } };
  const body = JSON.stringify({ message: 'Log in.', wait: false });
  expect(await (await fetch(content.handoffUrl, { ...request, body })).json()).toEqual({ status: 'waiting' });
  await expect.poll(() => agent.stderr).toMatch(/main: A person is needed: Log in\.\s+Open http/);
  const [, url] = /Open (http\S+)/.exec(agent.stderr)!;
  await expect.poll(() => agent.messages).toContain(url);
  const waiting = (await agent.call('lease_status')).content;
  expect(waiting.leases).toMatchObject([{ handoff: { status: 'waiting' } }]);
  expect(JSON.stringify([content, waiting])).not.toContain(url);
  expect((await reply(url!)).status).toBe(200);
  await expect
    .poll(async () => (await agent.call('lease_status')).content.leases)
    .toMatchObject([{ handoff: { status: 'done', note: '' } }]);
});

it('returns the links of the recordings at the release', async () => {
  await using agent = await Agent.lease(used.local, '--record');
  await agent.call('lease_browser', { name: 'main' });
  const { content } = await agent.call('release_browser', { name: 'main' });
  expect(content.replays).toEqual([expect.stringMatching(/^replay http:/)]);
});

it('leases a browser for each name, and refuses one above --max at once, with the names to release', async () => {
  await using agent = await Agent.lease(used.local, '--max', '2');
  const [one, two] = await Promise.all(
    ['one', 'two'].map(async (name) => (await agent.call('lease_browser', { name })).content),
  );
  expect(one!.session).not.toBe(two!.session);
  const third = await agent.call('lease_browser', { name: 'three' });
  expect(third).toMatchObject({
    isError: true,
    text: expect.stringMatching(/2 browsers at once.*"one".*"two"/),
  });
  expect(await agent.call('lease_browser', { name: 'one' })).toMatchObject({
    isError: true,
    text: expect.stringContaining(one!.cdpUrl) as string,
  });
  await agent.call('release_browser', { name: 'one' });
  expect((await agent.call('lease_browser', { name: 'three' })).isError).toBe(false);
});

it('reports the wait, and says what to do when no browser is free in time', async () => {
  await using service = await FakeService.start();
  service.script('acquire', { status: 204 });
  await using agent = await Agent.lease(service.options, '--acquire-timeout', '1s');
  const seen: string[] = [];
  const onprogress = ({ message = '' }) => void seen.push(message);
  const { isError, text } = await agent.call('lease_browser', { name: 'main' }, { onprogress });
  expect(text).toMatch(
    /^No browser of the pool test became free within [\d.]+ m?s\. You have none at present\. Call lease_browser again to wait longer/,
  );
  expect(isError).toBe(true);
  expect(seen[0]).toBe('Waiting for a browser of the pool test: 0 s of 1 s.');
});

it('ends the wait when the host cancels the call, and nothing stays leased', async () => {
  await using agent = await Agent.lease(used.local);
  await Promise.all(['one', 'two'].map((name) => agent.call('lease_browser', { name })));
  const cancel = new AbortController();
  const onprogress = () => cancel.abort();
  const waiting = agent.call('lease_browser', { name: 'three' }, { signal: cancel.signal, onprogress });
  await expect(waiting).rejects.toThrow('aborted');
  await Promise.all(['one', 'two'].map((name) => agent.call('release_browser', { name })));
  // The acquire request that was under way has been answered, too.
  await expect.poll(() => used.local.stats().waiting).toBe(0);
  expect((await agent.call('lease_status')).content).toEqual({ leases: [] });
  await expect.poll(leased).toBe(0);
});

it('releases a browser at the end of its lifetime, and a program that comes later is told to lease one', async () => {
  await using agent = await Agent.lease(used.local);
  const { cdpUrl } = (await agent.call('lease_browser', { name: 'main', lifetime: 1500 })).content;
  await expect.poll(leased).toBe(0);
  await expect(chromium.connectOverCDP(cdpUrl)).rejects.toThrow('its lease has ended');
  expect((await agent.call('lease_browser', { name: 'main' })).content.cdpUrl).toBe(cdpUrl);
  const browser = await chromium.connectOverCDP(cdpUrl);
  expect(await browser.contexts()[0]!.pages()[0]!.title()).toBe('New browser');
});

it('releases a browser to which no program has connected for --idle-timeout', async () => {
  await using agent = await Agent.lease(used.local, '--idle-timeout', '1s');
  await agent.call('lease_browser', { name: 'main' });
  await expect.poll(leased).toBe(0);
  await expect.poll(() => agent.stderr).toContain('as main: after');
});

describe('wrong arguments', () => {
  let service: FakeService;
  let agent: Agent;
  beforeAll(async () => {
    service = await FakeService.start();
    agent = await Agent.lease(service.options);
  });
  afterAll(async () => {
    await agent.client.close();
    await service.close();
  });

  it.each([
    ['lease_browser', {}, 'name is required'],
    ['lease_browser', { name: 'a/b' }, 'A name has 1 to 64 letters'],
    ['lease_browser', { name: 'json' }, 'is not json'],
    ['lease_browser', { name: '..' }, 'A name has'],
    ['lease_browser', { name: 7 }, 'name must be a string'],
    ['lease_browser', { name: 'a', pool: 'other' }, 'lease_browser has no option pool'],
    ['lease_browser', { name: 'a', lifetime: 'soon' }, 'a time such as "10m"'],
    ['lease_browser', { name: 'a', lifetime: -1 }, 'a number of milliseconds above 0'],
    ['lease_browser', { name: 'a', lifetime: '61m' }, 'lifetime can be 60 minutes at most'],
    ['lease_status', { name: 'a' }, 'You have no browser "a". You have none at present.'],
    ['lease_status', { extend: '1m' }, 'extend needs the name of a browser'],
    ['release_browser', { name: 'a' }, 'You have no browser "a"'],
  ])('%s refuses %j with a reason, and nothing is sent', async (tool, given, reason) => {
    const { isError, text } = await agent.call(tool, given);
    expect(text).toContain(reason);
    expect(isError).toBe(true);
    expect(service.requests).toEqual([]);
  });

  it('has no other tool', async () => {
    await expect(agent.call('browser_navigate')).rejects.toThrow('There is no tool browser_navigate');
  });
});

describe('the end', () => {
  const MAIN = resolve('dist/cli/main.js');
  /** A host whose agent has leased a browser, or waits for one, and the id of its server. */
  const startHost = async (lastLine: RegExp) => {
    const host = startProgram(['test/cli/mcp-host.mjs', MAIN, 'mcp', 'test'], variablesOf(used.local));
    await host.prints(lastLine);
    return { host, server: Number((await host.prints(/server (\d+)/))[1]) };
  };

  it.each([
    ['the host ends its connection', (agent: Agent) => agent.client.close()],
    ['SIGTERM arrives', ({ transport }: Agent) => process.kill(transport.pid!, 'SIGTERM')],
    ['SIGINT arrives', ({ transport }: Agent) => process.kill(transport.pid!, 'SIGINT')],
  ])('releases all browsers when %s', async (_, end) => {
    await using agent = await Agent.lease(used.local);
    await Promise.all(['one', 'two'].map((name) => agent.call('lease_browser', { name })));
    expect(leased()).toBe(2);
    const { released, destroyed } = used.local.stats();
    await end(agent);
    await expect.poll(leased).toBe(0);
    await expect.poll(() => agent.stderr.match(/released \w+ as/g)).toHaveLength(2);
    const after = used.local.stats();
    expect([after.released - released, after.destroyed - destroyed]).toEqual([2, 0]);
  });

  it('exits with 0 when its stdin ends, and prints nothing but messages', async () => {
    const server = startClient(['mcp', 'test'], used.local, { stdin: 'pipe' });
    const hello = {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    };
    const request = { jsonrpc: '2.0', id: 1, method: 'initialize', params: hello };
    server.child.stdin!.write(`${JSON.stringify(request)}\n`);
    await server.prints(/"serverInfo"/);
    server.child.stdin!.end();
    const { code, stdout, stderr } = await server.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({ id: 1, result: { serverInfo: { name: 'pooled-browser' } } });
    await server.leavesNothing();
  });

  it('releases the browser when the host is killed', async () => {
    const { host } = await startHost(/"cdpUrl"/);
    expect(leased()).toBe(1);
    await host.end('SIGKILL');
    await expect.poll(leased).toBe(0);
    await host.leavesNothing();
  });

  it('releases the browser when the server is killed', async () => {
    const { host, server } = await startHost(/"cdpUrl"/);
    process.kill(server, 'SIGKILL');
    await expect.poll(leased).toBe(0);
    await host.end('SIGKILL');
    await host.leavesNothing();
  });

  it('keeps no browser that is leased after the host was killed', async () => {
    const held = await Promise.all([1, 2].map(() => used.pool.acquire({ acquire_timeout_seconds: 60 })));
    const { host } = await startHost(/waiting/);
    await host.end('SIGKILL');
    await Promise.all(held.map((session) => used.pool.release(session!.session_id)));
    await host.leavesNothing();
    await expect.poll(leased).toBe(0);
  });
});

it('names the package to install when the SDK is missing', async () => {
  const main = installWithoutLibraries();
  const { code, stdout, stderr } = await startProgram([main, 'mcp', 'test'], variablesOf(used.local)).ended;
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toBe(
    'pooled-browser: The package @modelcontextprotocol/sdk could not be loaded. Install it: npm install @modelcontextprotocol/sdk\n',
  );
});

it('refuses flags that have no effect before a host connects', async () => {
  expectRefusal(
    await startClient(['mcp', 'test', '--record', 'failures'], used.local).ended,
    '--record failures',
  );
  expectRefusal(
    await startCli(['mcp', 'test'], { BROWSER_POOL_BASE_URL: '' }).ended,
    'address of the service',
  );
});

it('leases the browser of another MCP server, which knows the address from its start', async () => {
  await using agent = await Agent.lease(used.local, '--no-secret');
  const { cdpUrl } = (await agent.call('lease_browser', { name: 'other' })).content;
  const playwright = resolve('node_modules/@playwright/mcp/cli.js');
  await using driver = await Agent.start([playwright, '--cdp-endpoint', new URL('main', cdpUrl).href]);
  const open = () => driver.call('browser_navigate', { url: titled('driven') });
  expect((await open()).text).toContain('Call the tool lease_browser');
  expect(leased()).toBe(1);
  await agent.call('lease_browser', { name: 'main' });
  expect((await open()).text).toContain('Page Title: driven');
  await agent.call('release_browser', { name: 'main' });
  expect((await open()).text).toContain('Call the tool lease_browser');
  expect(leased()).toBe(1);
});
