/**
 * `npm run bench:import`: what importing each entry costs a process, above an empty one; the library's drivers and
 * undici for comparison. ROUNDS (default 30) sets how often. Wants `dist/`.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { median, printTable } from './figures.js';

const ROUNDS = Number(process.env['ROUNDS'] ?? 30);
const ROOT = new URL('../../', import.meta.url);
const { exports } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')) as { exports: object };
const entries = Object.keys(exports)
  // The fixtures only load inside their runners.
  .filter((entry) => !/json|test$/.test(entry))
  .map((entry) => `pooled-browser${entry.slice(1)}`);
const peers = ['undici', 'playwright-core', 'puppeteer-core', '@onkernel/sdk'];

const times = new Map<string, number[]>();
for (let round = 0; round < ROUNDS; round++) {
  for (const name of ['', ...entries, ...peers])
    times.set(name, [...(times.get(name) ?? []), timeImport(name)]);
}
const empty = median(times.get('')!);
const rows = [...entries, ...peers].map((name) => [
  name,
  `${(median(times.get(name)!) - empty).toFixed(1)} ms`,
]);
printTable(['import', `above an empty process (${empty.toFixed(0)} ms)`], rows);

/** Milliseconds of a whole process. */
function timeImport(name: string): number {
  const script = name === '' ? '' : `await import(${JSON.stringify(name)})`;
  const began = performance.now();
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    cwd: fileURLToPath(ROOT),
  });
  if (status !== 0) throw new Error(String(stderr));
  return performance.now() - began;
}
