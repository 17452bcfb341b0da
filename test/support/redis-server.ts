import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';

export const hasRedis = spawnSync('redis-server', ['--version']).status === 0;

/** A Redis on a free port of this machine, which keeps its data in a file (AOF) when it restarts. */
export class TestRedis implements AsyncDisposable {
  readonly port: number;
  readonly #folder = mkdtempSync(join(tmpdir(), 'redis-'));
  readonly #password: string | undefined;
  #server: ChildProcess | undefined;

  static async start({ password }: { password?: string } = {}): Promise<TestRedis> {
    const redis = new TestRedis(await freePort(), password);
    await redis.begin();
    return redis;
  }

  private constructor(port: number, password: string | undefined) {
    this.port = port;
    this.#password = password;
  }

  get url(): string {
    const user = this.#password === undefined ? '' : `:${this.#password}@`;
    return `redis://${user}127.0.0.1:${this.port}`;
  }

  /** A client to look at what is stored. */
  async connect(): Promise<Redis> {
    const client = new Redis(this.url);
    await client.ping();
    return client;
  }

  async begin(): Promise<void> {
    const address = ['--port', `${this.port}`, '--bind', '127.0.0.1', '--dir', this.#folder];
    const secret = this.#password === undefined ? [] : ['--requirepass', this.#password];
    // By default, a slow disk postpones writes by up to two seconds, and a killed Redis loses them.
    const storage = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'always'];
    const args = [...address, ...storage, ...secret];
    const server = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#server = server;
    let output = '';
    for await (const text of server.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
      output += text as string;
      if (output.includes('Ready to accept connections')) break;
    }
    if (server.exitCode !== null) throw new Error(`Redis did not start:\n${output}`);
    server.stdout.resume();
  }

  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server) return;
    const exited = once(server, 'exit');
    server.kill(signal);
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('SIGKILL');
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  await once(server.close(), 'close');
  return port;
}
