import { spawnSync } from 'node:child_process';

/** Returns what this machine lacks for this example, with the command that installs it. */
export function missing(): string | undefined {
  if (spawnSync('redis-server', ['--version']).status !== 0) {
    return 'there is no redis-server on this machine (apt-get install redis-server)';
  }
  try {
    import.meta.resolve('ioredis');
    return undefined;
  } catch {
    return 'BullMQ finds no ioredis (npm install ioredis)';
  }
}
