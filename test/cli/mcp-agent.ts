import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { variablesOf, type Environment } from '../support/program.js';

interface LeaseView {
  name: string;
  cdpUrl: string;
  handoffUrl: string;
  handoff?: { status: string };
  session: string;
  remaining: string;
  end: string;
}

interface ToolResult {
  isError: boolean;
  text: string;
  /** The result as an object: which of these fields it has is a matter of the tool. */
  content: LeaseView & { leases: LeaseView[]; released: string; replays: string[] };
}

/** Starts an MCP server as the host of an agent does, and calls its tools. */
export class Agent implements AsyncDisposable {
  readonly client = new Client({ name: 'test', version: '1.0.0' });
  readonly transport: StdioClientTransport;
  /** All messages of the server, as text. */
  messages = '';
  stderr = '';

  private constructor(args: readonly string[], environment: Environment) {
    const env = { ...process.env, ...environment } as Record<string, string>;
    // The servers write files to their working folder.
    const cwd = mkdtempSync(join(tmpdir(), 'm-'));
    this.transport = new StdioClientTransport({
      command: process.execPath,
      args: [...args],
      env,
      cwd,
      stderr: 'pipe',
    });
    this.transport.stderr!.on('data', (text: Buffer) => (this.stderr += text.toString()));
  }

  static async start(args: readonly string[], environment: Environment = {}): Promise<Agent> {
    const agent = new Agent(args, environment);
    await agent.client.connect(agent.transport);
    const { onmessage } = agent.transport;
    agent.transport.onmessage = (message) => {
      agent.messages += `${JSON.stringify(message)}\n`;
      onmessage?.(message);
    };
    return agent;
  }

  /** Starts the command `mcp`. */
  static lease(service: { baseUrl: string; token: string }, ...flags: string[]): Promise<Agent> {
    return Agent.start([resolve('dist/cli/main.js'), 'mcp', 'test', ...flags], variablesOf(service));
  }

  async call(
    name: string,
    given: Record<string, unknown> = {},
    options: Parameters<Client['callTool']>[2] = {},
  ): Promise<ToolResult> {
    const result = await this.client.callTool({ name, arguments: given }, undefined, options);
    const text = (result.content as { text?: string }[]).map((part) => part.text ?? '').join('\n');
    return {
      isError: result.isError === true,
      text,
      content: result.structuredContent as ToolResult['content'],
    };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.client.close();
  }
}
