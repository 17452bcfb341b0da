/** `npm run bench`: every measurement, one after the other, each in a process of its own. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const PARTS = [
  'overhead',
  'round-trips',
  'import',
  'first-lease',
  'http',
  'many',
  'local-pool',
  'sockets',
  'recording',
  'scraping',
];

let failed = 0;
for (const part of PARTS) {
  console.log(`\n## ${part}`);
  const script = fileURLToPath(new URL(`${part}.ts`, import.meta.url));
  const { status } = spawnSync(process.execPath, ['--import', 'tsx', script], { stdio: 'inherit' });
  if (status !== 0) failed++;
}
process.exitCode = failed;
