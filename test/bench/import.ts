/**
 * `npm run bench -- import`: the additional time of a process that imports each entry, compared with an empty process.
 * Also measures the automation libraries, undici and the SDK. ROUNDS (default 30). Needs `dist/`.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { compare, printComparison, setting } from './bench.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const EMPTY = 'an empty process';
const { exports } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { exports: object };
// The fixtures load only inside their test runners.
const entries = Object.keys(exports).filter((entry) => !/json|test$/.test(entry));
const names = entries.map((entry) => `pooled-browser${entry.slice(1)}`);
const others = ['undici', 'playwright-core', 'puppeteer-core', '@onkernel/sdk'];

const ways = [EMPTY, ...names, ...others].map(
  (name) => [name, async () => ({ import: timeImport(name) })] as const,
);
const rows = await compare({
  subject: 'import',
  ways: Object.fromEntries(ways),
  units: { import: 'ms' },
  peers: [EMPTY],
  rounds: setting('ROUNDS', 30),
});
printComparison(rows, [EMPTY]);

/** Milliseconds of a whole process. */
function timeImport(name: string): number {
  const script = name === EMPTY ? '' : `await import(${JSON.stringify(name)})`;
  const began = performance.now();
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    cwd: ROOT,
  });
  if (status !== 0) throw new Error(String(stderr));
  return performance.now() - began;
}
