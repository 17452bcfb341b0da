/** An agent leases a browser for each of its tasks with `pooled-browser mcp`, and drives each with another MCP server. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { startLocalPool } from 'pooled-browser/local';

const url = process.argv[2] ?? 'data:text/html,<title>Shop</title><h1>Welcome</h1><button>Buy</button>';

// Uses the service that the environment names, or else starts a local pool.
await using local = process.env.BROWSER_POOL_BASE_URL ? undefined : await startLocalPool();
const service = local && { BROWSER_POOL_BASE_URL: local.baseUrl, BROWSER_POOL_ACCESS_TOKEN: local.token };

// These calls stand for those of a model. The same as `npx pooled-browser mcp default`.
await using browsers = await connect('../../dist/cli/main.js', ['mcp', 'default'], service);

const first = await lease('first');
{
  // The address is a secret, which all users of a machine can read in arguments.
  const address = { PLAYWRIGHT_MCP_CDP_ENDPOINT: first.cdpUrl };
  await using playwright = await connect('../../node_modules/@playwright/mcp/cli.js', [], address);
  await playwright.call('browser_navigate', { url });
  console.log(await playwright.call('browser_snapshot', {}));
}
console.log('Released:', await browsers.call('release_browser', { name: 'first' }));

const second = await lease('second');
{
  const program = '../../node_modules/chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js';
  await using chrome = await connect(program, ['--wsEndpoint', second.cdpUrl, '--no-usage-statistics']);
  console.log(await chrome.call('new_page', { url }));
}
// The second browser is released when the host of the agent ends: here.

async function lease(name: string): Promise<{ cdpUrl: string }> {
  return JSON.parse(await browsers.call('lease_browser', { name, lifetime: '10m' })) as { cdpUrl: string };
}

/** Starts an MCP server, as the host of an agent does. */
async function connect(program: string, args: string[], variables: Record<string, string> = {}) {
  // The servers write files to their working folder.
  const cwd = await mkdtemp(join(tmpdir(), 'mcp-'));
  const env = { ...(process.env as Record<string, string>), ...variables };
  const words = [fileURLToPath(new URL(program, import.meta.url)), ...args];
  const client = new Client({ name: 'example', version: '1.0.0' });
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: words, env, cwd, stderr: 'ignore' }),
  );
  return {
    async call(name: string, given: Record<string, unknown>): Promise<string> {
      const { content } = await client.callTool({ name, arguments: given });
      return (content as { text: string }[]).map((part) => part.text).join('\n');
    },
    async [Symbol.asyncDispose]() {
      await client.close();
      await rm(cwd, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}
