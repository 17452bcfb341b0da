/** Runs the Playwright MCP server on a leased browser, and drives it with an MCP client. */
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { startLocalPool } from 'pooled-browser/local';

const url = process.argv[2] ?? 'data:text/html,<title>Shop</title><h1>Welcome</h1><button>Buy</button>';

// Uses the service that the environment names, or else starts a local pool.
await using local = process.env.BROWSER_POOL_BASE_URL ? undefined : await startLocalPool();

// The same as `npx pooled-browser exec default -- sh -c '…' npx @playwright/mcp`, without npx.
const POOLED_BROWSER = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const PLAYWRIGHT_MCP = fileURLToPath(new URL('cli.js', import.meta.resolve('@playwright/mcp')));
// The browser's URL contains a secret. Other users of the machine can read arguments, but not the environment.
const WITH_ITS_BROWSER = 'PLAYWRIGHT_MCP_CDP_ENDPOINT=$BROWSER_POOL_CDP_WS_URL exec "$0" "$@"';

const SERVER = ['sh', '-c', WITH_ITS_BROWSER, process.execPath, PLAYWRIGHT_MCP, '--snapshot-mode', 'none'];

const transport = new StdioClientTransport({
  command: process.execPath,
  args: [POOLED_BROWSER, 'exec', 'default', '--', ...SERVER],
  env: {
    ...(process.env as Record<string, string>),
    ...(local && { BROWSER_POOL_BASE_URL: local.baseUrl, BROWSER_POOL_ACCESS_TOKEN: local.token }),
  },
});
const client = new Client({ name: 'example', version: '1.0.0' });
await client.connect(transport);

await client.callTool({ name: 'browser_navigate', arguments: { url } });
const { content } = await client.callTool({ name: 'browser_snapshot', arguments: {} });
for (const { text } of content as { text: string }[]) console.log(text);

// Ends the server; then `exec` releases the browser.
await client.close();
