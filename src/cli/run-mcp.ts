import type { ProxyEvent, RunEvent } from '../calls/events.js';
import { onAbort } from '../shared/abort.js';
import { duration } from '../shared/errors.js';
import { lazyLibrary } from '../shared/lazy-library.js';
import { VERSION } from '../shared/version.js';
import { createLeaseLog, describeReplays } from './lease.js';
import { BrowserTools, type ToolCall } from './mcp-tools.js';
import { leaseSettings, type LeaseCommandOptions } from './options.js';
import { openPools } from './service.js';
import { note } from './terminal.js';

export interface McpCommandOptions extends LeaseCommandOptions {
  port: number;
  secret: boolean;
  max?: number;
  /** In ms. */
  lifetime: number;
  /** In ms. */
  idleTimeout: number;
}

const loadSdk = lazyLibrary('@modelcontextprotocol/sdk', async () => ({
  ...(await import('@modelcontextprotocol/sdk/server/mcp.js')),
  ...(await import('@modelcontextprotocol/sdk/server/stdio.js')),
  ...(await import('@modelcontextprotocol/sdk/types.js')),
}));

type Sdk = Awaited<ReturnType<typeof loadSdk>>;

/** Serves the tools until the host ends, or until a signal. Writes nothing but messages of MCP to stdout. */
export async function runMcp(
  poolList: string,
  options: McpCommandOptions,
  signal: AbortSignal,
): Promise<void> {
  const { port, secret, max, lifetime, idleTimeout } = options;
  const sdk = await loadSdk();
  await using pools = await openPools(poolList, options);
  const { startProxy } = await import('../calls/serve-proxy.js');
  let print = note;
  const log = createLeaseLog(options.acquireTimeout, (text) => print(text));
  const settings = {
    ...leaseSettings(options),
    port,
    secret,
    idleTimeout,
    // A browser without a client is idle, too.
    keep: idleTimeout,
    maxLifetime: 2 * lifetime,
    // Hosts kill their servers.
    releaseOnCrash: true,
    onClient: report,
    onEvent: (event: RunEvent) => {
      // The progress of the tool shows each wait.
      if (event.type !== 'waiting' || event.error) log(event);
    },
  };
  await using proxy = await startProxy(pools, settings, { notLeased: NOT_LEASED });
  const tools = new BrowserTools(proxy, {
    pool: poolList,
    lifetime,
    max,
    acquireTimeout: options.acquireTimeout,
  });
  const server = createServer(sdk, tools);
  // Hosts show the messages of the log to people, and not each shows stderr.
  print = (text) => {
    note(text);
    server.sendLoggingMessage({ level: 'notice', logger: 'pooled-browser', data: text }).catch(() => {});
  };
  const ended = endOf(server, signal);
  await server.connect(new sdk.StdioServerTransport());
  if (process.stdin.isTTY) note(AT_TERMINAL);
  await ended;
  // The host gets no more messages: it may no longer read them.
  await server.close();
}

/** The server of the protocol, without a connection. */
function createServer(sdk: Sdk, tools: BrowserTools): Sdk['McpServer']['prototype']['server'] {
  const options = { capabilities: { tools: {}, logging: {} }, instructions: tools.instructions };
  // The tools are not registered one by one: schemas would need zod, which is no dependency of this library.
  const { server } = new sdk.McpServer({ name: 'pooled-browser', version: VERSION }, options);
  server.setRequestHandler(sdk.ListToolsRequestSchema, () => ({ tools: tools.list() }));
  server.setRequestHandler(
    sdk.CallToolRequestSchema,
    ({ params }, { signal, _meta: facts, sendNotification }) => {
      const { name, arguments: given = {} } = params;
      if (!tools.has(name)) throw new sdk.McpError(sdk.ErrorCode.InvalidParams, `There is no tool ${name}.`);
      const progressToken = facts?.progressToken;
      const notify: ToolCall['notify'] = async (progress) => {
        if (progressToken === undefined) return;
        await sendNotification({ method: 'notifications/progress', params: { ...progress, progressToken } });
      };
      return tools.call(name, given, { signal, notify });
    },
  );
  return server;
}

const NOT_LEASED =
  'No browser of this name is leased, or its lease has ended. Call the tool lease_browser, and connect to the cdpUrl in its result.';

const AT_TERMINAL =
  'This command is a server for the host of an agent, which starts it. Press Ctrl-C to stop.';

/** Resolves when the host has ended, or has closed the connection, and at a signal. */
async function endOf(server: { onclose?: (() => void) | undefined }, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    onAbort(signal, resolve);
    server.onclose = resolve;
    for (const event of ['end', 'close', 'error']) process.stdin.once(event, () => resolve());
  });
}

/** A host keeps stderr for people. The live view, whose URL contains a secret, is in the result of the tool only. */
function report(event: ProxyEvent): void {
  const { name = '' } = event;
  if (event.type === 'leased') note(`leased ${event.sessionId} as ${name}, after ${duration(event.waited)}`);
  if (event.type === 'refused') note(`refused ${name}: ${event.reason}`);
  if (event.type !== 'released') return;
  const { sessionId, elapsed, summary } = event;
  const facts = [`after ${duration(elapsed)}`, summary.released, ...describeReplays(summary)];
  note(`released ${sessionId} as ${name}: ${facts.join(', ')}`);
}
