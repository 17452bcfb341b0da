import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * `npm run mutate`, or `npm run mutate acquire`: changes the code of a room in every way that Stryker knows, one at a
 * time, and counts the changes that no test notices. Those are told on the way, and stand in reports/mutation.
 * Further arguments go to Stryker: with `--incremental` it tries again what the last such run did not notice.
 */
const ROOMS = ['acquire', 'run', 'connect'];

interface Counts {
  changes: number;
  noticed: number;
}

const args = process.argv.slice(2);
const asked = ROOMS.filter((room) => args.includes(room));
const rooms = asked.length > 0 ? asked : ROOMS;
const counts = rooms.map((room) => mutate(room));
const all = counts.reduce((sum, { changes, noticed }) => ({
  changes: sum.changes + changes,
  noticed: sum.noticed + noticed,
}));
for (const [index, room] of rooms.entries()) print(room, counts[index]!);
print('all', all);

function mutate(room: string): Counts {
  const options = args.filter((argument) => !ROOMS.includes(argument));
  const { status } = spawnSync(
    'npx',
    ['--no-install', 'stryker', 'run', 'test/mutation/stryker.config.js', ...options],
    { env: { ...process.env, MUTATED_ROOM: room }, stdio: 'inherit' },
  );
  if (status !== 0) process.exit(status ?? 1);
  return count(readFileSync(`reports/mutation/${room}.json`, 'utf8'));
}

interface Report {
  files: Record<string, { mutants: { status: string }[] }>;
}

/** A change that ends in a hang is noticed; one that no test can be run with, or that was left out, does not count. */
function count(report: string): Counts {
  const { files } = JSON.parse(report) as Report;
  const statuses = Object.values(files).flatMap(({ mutants }) => mutants.map(({ status }) => status));
  const among = (...wanted: string[]) => statuses.filter((status) => wanted.includes(status)).length;
  const noticed = among('Killed', 'Timeout');
  return { noticed, changes: noticed + among('Survived', 'NoCoverage') };
}

function print(room: string, { changes, noticed }: Counts): void {
  const score = ((100 * noticed) / changes).toFixed(1);
  console.log(`${room.padEnd(8)} ${score.padStart(5)} %  (${noticed} of ${changes} changes noticed)`);
}
