import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';

const READY = 'Ready to accept connections';

export const hasRedis = spawnSync('redis-server', ['--version']).status === 0;

/** A Redis on a free port of this machine, which keeps its data in a file (AOF) when it restarts. */
export class TestRedis implements AsyncDisposable {
  readonly port: number;
  readonly #folder = mkdtempSync(join(tmpdir(), 'redis-'));
  readonly #password: string | undefined;
  #server: ChildProcess | undefined;

  static async start({ password }: { password?: string } = {}): Promise<TestRedis> {
    for (let attempt = 1; ; attempt++) {
      // Below the ports that systems assign, so that a restart gets it again.
      const redis = new TestRedis(randomInt(20_000, 30_000), password);
      try {
        await redis.begin();
        return redis;
      } catch (error) {
        await redis[Symbol.asyncDispose]();
        // Another process may use the port.
        if (attempt === 5) throw error;
      }
    }
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
      if (output.includes(READY)) break;
    }
    if (!output.includes(READY)) {
      await this.end();
      throw new Error(`Redis did not start:\n${output}`);
    }
    server.stdout.resume();
  }

  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const exited = once(server, 'exit');
    server.kill(signal);
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('SIGKILL');
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
