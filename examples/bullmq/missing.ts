import { spawnSync } from 'node:child_process';

/** What this example needs and this machine has not, and how to get it. */
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
