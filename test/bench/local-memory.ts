/**
 * `npm run bench -- local-memory`: the memory of a local pool.
 *
 * 1. The memory of the process of the pool and of its browser after many leases, each with a page of its own, compared with that after
 *    the first ones, as the pool is and without `maxLeases`. LEASES (default 1000), FIRST (default 50).
 * 2. A pool with the size that fits 16 cores and 2 GB, in a memory limit of the kernel of 2 GB where this machine allows one (as root, with
 *    the control groups of the memory): 32 callers lease at once, each with a page of HELD MB (default 100). Nothing may be killed.
 *
 * Memory is read from /proc, so only on Linux.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { BrowserPool } from '../../src/index.js';
import { startLocalPool } from '../../src/local.js';
import { memoryOfGroup } from '../../src/local/pool/browser-memory.js';
import { withPooledBrowser } from '../../src/playwright.js';
import { browsersThatFit } from '../../src/shared/machine.js';
import { Site } from '../support/site.js';
import { setting } from './bench.js';

const MEGABYTE = 1024 * 1024;
const LIMIT = 2048 * MEGABYTE;
const [LEASES, FIRST] = [setting('LEASES', 1000), setting('FIRST', 50)];
const CALLERS = 32;
const PROGRAM = fileURLToPath(new URL('programs/local-callers.mjs', import.meta.url));

for (const maxLeases of [undefined, Number.MAX_SAFE_INTEGER]) {
  const { first, last, most } = await measureGrowth(maxLeases);
  const what = maxLeases === undefined ? 'as it is' : 'without maxLeases';
  console.log(
    `${what}: ${first.toFixed(0)} MB after ${FIRST} leases, ${last.toFixed(0)} MB after ${LEASES} (×${(last / first).toFixed(2)}), ` +
      `most ×${(most / first).toFixed(2)}`,
  );
}
await runLimited();

/** MB of this process and of the browser, between leases. */
async function measureGrowth(maxLeases: number | undefined) {
  await using site = await Site.open((request, response) =>
    response.end(
      `<title>${request.url}</title><script>localStorage.x = 'x'.repeat(1e5)</script>${'<p>text'.repeat(2000)}`,
    ),
  );
  let browser = 0;
  await using local = await startLocalPool({
    pools: [{ maxLeases }],
    onLog: (event) => event.type === 'browser-started' && (browser = event.pid),
  });
  await using pool = new BrowserPool('default', { baseUrl: local.baseUrl, token: local.token });
  const samples: number[] = [];
  for (let count = 1; count <= LEASES; count++) {
    await withPooledBrowser(pool, ({ page }) => page.goto(`${site.url}/${count}`), { replays: 'off' });
    if (count % FIRST !== 0) continue;
    // A browser that was just replaced has started.
    await sleep(2000);
    globalThis.gc?.();
    const held = memoryOfGroup(browser) + process.memoryUsage().rss;
    samples.push(held / MEGABYTE);
  }
  return { first: samples[0]!, last: samples.at(-1)!, most: Math.max(...samples) };
}

/** Leases for 32 callers in a pool of the size that fits, within a limit of memory. */
async function runLimited(): Promise<void> {
  const size = browsersThatFit({ cores: 16, memory: LIMIT });
  const group = limitMemory();
  const env = { ...process.env, SIZE: String(size), CALLERS: String(CALLERS), GROUP: group?.tasks };
  const { stdout } = spawnSync(process.execPath, [PROGRAM], {
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const peak = group
    ? `, most ${(group.most() / MEGABYTE).toFixed(0)} MB of ${LIMIT / MEGABYTE}, killed ${group.killed()}`
    : '';
  const where = group ? 'in a control group' : 'without a control group, which this machine does not allow';
  console.log(`16 cores and 2 GB: ${size} browsers, ${CALLERS} callers (${where}): ${stdout.trim()}${peak}`);
  group?.remove();
}

/** A control group of version 1 or 2 with the limit; undefined if this machine allows none. */
function limitMemory() {
  const isFirst = existsSync('/sys/fs/cgroup/memory/memory.limit_in_bytes');
  const folder = join(isFirst ? '/sys/fs/cgroup/memory' : '/sys/fs/cgroup', `pool-${process.pid}`);
  try {
    mkdirSync(folder);
    writeFileSync(join(folder, isFirst ? 'memory.limit_in_bytes' : 'memory.max'), String(LIMIT));
  } catch {
    return undefined;
  }
  const read = (name: string) => readFileSync(join(folder, name), 'utf8');
  return {
    tasks: join(folder, 'cgroup.procs'),
    most: () => Number(read(isFirst ? 'memory.max_usage_in_bytes' : 'memory.peak')),
    killed: () =>
      Number(/^oom_kill (\d+)/m.exec(read(isFirst ? 'memory.oom_control' : 'memory.events'))?.[1]),
    remove: () => rmdirSync(folder),
  };
}
