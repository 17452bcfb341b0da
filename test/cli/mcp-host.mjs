// A host of an agent: starts the command of its arguments as an MCP server, calls lease_browser, and stays.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const args = process.argv.slice(2);
const transport = new StdioClientTransport({
  command: process.execPath,
  args,
  env: process.env,
  stderr: 'ignore',
});
const client = new Client({ name: 'host', version: '1.0.0' });
await client.connect(transport);
console.log(`server ${transport.pid}`);
const onprogress = () => console.log('waiting');
const leasing = client.callTool({ name: 'lease_browser', arguments: { name: 'main' } }, undefined, {
  onprogress,
});
console.log((await leasing).content[0].text);
