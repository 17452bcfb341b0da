import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { installExample, packageOfTests } from '../examples/support.js';
import { titled, useLocalPool } from '../support/local.js';
import { startProgram, variablesOf } from '../support/program.js';
import { Agent } from './mcp-agent.js';

const agentBrowser = packageOfTests('agent-browser');
const isInstalled = agentBrowser !== undefined && packageOfTests('@openai/agents') !== undefined;
const SKIPPED = isInstalled ? '' : ' (skipped: npm ci --prefix test/sdks installs it)';

const used = useLocalPool({ pools: [{ name: 'default', size: 1 }] });

it.skipIf(!isInstalled)(
  `an agent of the OpenAI Agents SDK leases a browser, reads a page, and releases the browser${SKIPPED}`,
  async () => {
    const agent = installExample('openai-agents/agent.mjs', ['@openai', 'zod', 'playwright-core']);
    const words = [agent, resolve('dist/cli/main.js'), titled('Shop')];
    const { stdout, stderr } = await startProgram(words, variablesOf(used.local)).ended;
    expect(stdout, stderr).toBe('The page is called "Shop". The browser was reused.\n');
    expect(used.local.stats().leased).toBe(0);
  },
);

it.skipIf(!isInstalled)(`agent-browser drives a browser that the agent has leased${SKIPPED}`, async () => {
  await using agent = await Agent.start(
    [resolve('dist/cli/main.js'), 'mcp', 'default'],
    variablesOf(used.local),
  );
  const { cdpUrl } = (await agent.call('lease_browser', { name: 'main' })).content;
  const home = mkdtempSync(join(tmpdir(), 'h-'));
  const run = async (...args: string[]) => {
    const command = [join(agentBrowser!, 'bin/agent-browser.js'), ...args];
    const { stdout, stderr } = await startProgram(command, { HOME: home, AGENT_BROWSER_SOCKET_DIR: home })
      .ended;
    return stdout + stderr;
  };
  expect(await run('--cdp', cdpUrl, 'open', titled('Shop'))).toContain('Shop');
  expect(await run('get', 'title')).toContain('Shop');
  // Ends its process in the background, which is connected to the browser.
  await run('close');
  expect((await agent.call('release_browser', { name: 'main' })).content.released).toBe('reused');
});
