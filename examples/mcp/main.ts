/** Drives the MCP servers of mcp.json on leased browsers, as a client with this configuration does. */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { BrowserPool, serveProxy } from 'pooled-browser';
import { startLocalPool } from 'pooled-browser/local';

const url = process.argv[2] ?? 'data:text/html,<title>Shop</title><h1>Welcome</h1><button>Buy</button>';
/** So that the example is short. Agents think for longer. */
const IDLE_TIMEOUT = 8000;

// Uses the service that the environment names, or else starts a local pool.
await using local = process.env.BROWSER_POOL_BASE_URL ? undefined : await startLocalPool();
await using pool = new BrowserPool('default', { baseUrl: local?.baseUrl, token: local?.token });

// The same as `npx pooled-browser proxy default --no-secret --idle-timeout 8s`, on any free port.
await using proxy = await serveProxy(pool, {
  secret: false,
  idleTimeout: IDLE_TIMEOUT,
  onClient: ({ type, name }) => console.log(`proxy: ${type} ${name}`),
});

interface Server {
  command: string;
  args: string[];
}
const text = readFileSync(new URL('mcp.json', import.meta.url), 'utf8');
const { mcpServers } = JSON.parse(text) as {
  mcpServers: Record<'playwright' | 'chrome' | 'alone', Server>;
};

await using playwright = await connect(mcpServers.playwright);
await playwright.call('browser_navigate', { url });
console.log(await playwright.call('browser_snapshot'));
await sleep(IDLE_TIMEOUT + 3000);
console.log(await playwright.call('browser_snapshot'));

await using chrome = await connect(mcpServers.chrome);
console.log(await chrome.call('new_page', { url }));

await using alone = await connect(mcpServers.alone);
await alone.call('browser_navigate', { url });
console.log(await alone.call('browser_snapshot'));

/** Starts a server as an MCP client does. The calls lease and use its browser. */
async function connect({ args }: Server) {
  // The servers write files to their working folder.
  const folder = await mkdtemp(join(tmpdir(), 'mcp-'));
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: withoutNpx(args),
    cwd: folder,
    stderr: 'ignore',
    env: {
      ...(process.env as Record<string, string>),
      ...(local && { BROWSER_POOL_BASE_URL: local.baseUrl, BROWSER_POOL_ACCESS_TOKEN: local.token }),
    },
  });
  const client = new Client({ name: 'example', version: '1.0.0' });
  await client.connect(transport);
  return {
    async call(name: string, given: Record<string, unknown> = {}): Promise<string> {
      const { content } = await client.callTool({ name, arguments: given });
      return (content as { text: string }[]).map((part) => part.text).join('\n');
    },
    async [Symbol.asyncDispose]() {
      // Ends the server.
      await client.close();
      await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

/** The programs of this clone instead of those that npx finds, and the port of this proxy. */
function withoutNpx(args: string[]): string[] {
  const programs: Record<string, string> = {
    '@playwright/mcp': new URL('cli.js', import.meta.resolve('@playwright/mcp')).href,
    'chrome-devtools-mcp': new URL(
      '../../node_modules/chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js',
      import.meta.url,
    ).href,
    'pooled-browser': new URL('../../dist/cli/main.js', import.meta.url).href,
  };
  const found = args.map((arg) => (programs[arg] ? fileURLToPath(programs[arg]) : arg));
  return found
    .map((arg) => (arg === 'npx' ? process.execPath : arg))
    .map((arg) => arg.replace('127.0.0.1:9333', new URL(proxy.url).host));
}
