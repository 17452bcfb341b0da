/**
 * `npm run chaos`, second part: a hostile browser, and a hostile client, over the connections of all three drivers. MESSAGES
 * (20,000) and SEED (1) set the number of changed messages and the random choices, MINUTES (10) the time after which no further
 * lease begins.
 */
import { fuzz, type FuzzFinding, type FuzzRow } from '../support/cdp-fuzz.js';
import { printTable, setting } from './bench.js';

const MESSAGES = setting('MESSAGES', 20_000);
const SEED = setting('SEED', 1);
const MINUTES = setting('MINUTES', 10);
/** Milliseconds for the leases that are open at the end. */
const LAST_LEASES = 90_000;

const findings: FuzzFinding[] = [];
let rows: readonly FuzzRow[] = [];
const began = performance.now();

// Whatever hangs: what was found is printed.
setTimeout(() => end('A lease did not end.'), MINUTES * 60_000 + LAST_LEASES).unref();
await fuzz({
  messages: MESSAGES,
  seed: SEED,
  time: MINUTES * 60_000,
  onStart: (figures) => (rows = figures),
  onFinding: (finding) => {
    findings.push(finding);
    console.log(`${finding.what}: ${finding.text}\n`);
  },
});
end();

function end(fault?: string): never {
  const seconds = Math.round((performance.now() - began) / 1000);
  const endsOf = ({ ends }: FuzzRow) =>
    Object.entries(ends)
      .map(([name, count]) => `${count} ${name}`)
      .join(', ');
  printTable(
    [
      `${MESSAGES} changed messages, seed ${SEED}`,
      'changed',
      'leases',
      'calls',
      'answered',
      'runs ended with',
    ],
    rows.map((row) => [row.driver, row.messages, row.leases, row.calls, row.answered, endsOf(row)]),
  );
  const counts = new Map<string, number>();
  for (const { what } of findings) counts.set(what, (counts.get(what) ?? 0) + 1);
  console.log([...counts].map(([what, count]) => `${what}: ${count}`).join('\n') || 'Nothing was found.');
  if (fault !== undefined) console.log(fault);
  const total = rows.reduce((sum, { messages }) => sum + messages, 0);
  console.log(`${total} changed messages in ${seconds} s`);
  const faults = findings.filter(({ what }) => what !== 'known fault of an automation library');
  process.exit(fault === undefined && faults.length === 0 && total >= MESSAGES ? 0 : 1);
}
