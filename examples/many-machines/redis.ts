import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

/** Starts a Redis server in memory on a free port of this machine. */
export async function startRedis(): Promise<{ port: number } & AsyncDisposable> {
  const port = await freePort();
  const inMemory = ['--save', '', '--appendonly', 'no'];
  const redis = spawn('redis-server', ['--port', `${port}`, '--bind', '127.0.0.1', ...inMemory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(redis, 'exit');
  let said = '';
  for await (const text of redis.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    said += text as string;
    if (said.includes('Ready to accept connections')) break;
  }
  if (redis.exitCode !== null) throw new Error(`Redis did not start:\n${said}`);
  redis.stdout.resume();
  return {
    port,
    [Symbol.asyncDispose]: async () => {
      redis.kill();
      await exited;
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  await once(server.close(), 'close');
  return port;
}
