/** `npm run bench` runs all benchmarks, `npm run bench -- overhead` one of them. The first comment of each file explains it. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const BENCHES = [
  'overhead',
  'callers',
  'message-time',
  'round-trips',
  'long-leases',
  'import',
  'local-pool',
  'local-memory',
  'hostile-messages',
  'scraping',
  'queue',
  'agents',
  'expose-network',
  'exposed-sizes',
  'exposed-bodies',
  'allowed-hosts',
  'allowed-hosts-ends',
  'navigating-away',
  'recording',
  'real-services',
];

const names = process.argv.length > 2 ? process.argv.slice(2) : BENCHES;
const unknown = names.filter((name) => !BENCHES.includes(name));
if (unknown.length > 0)
  throw new Error(`There is no benchmark ${unknown.join(', ')}, only ${BENCHES.join(', ')}.`);
for (const name of names) {
  console.log(`## ${name}`);
  const path = fileURLToPath(new URL(`${name}.ts`, import.meta.url));
  const { status } = spawnSync(process.execPath, ['--import', 'tsx', path], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
