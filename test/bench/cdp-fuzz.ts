/**
 * `npm run chaos`, second part: a hostile browser, and a hostile client, over the connections of all three drivers. MESSAGES
 * (20,000) and SEED (1) set the number of changed messages and the random choices.
 */
import { fuzz } from '../support/cdp-fuzz.js';
import { printTable, setting } from './bench.js';

const MESSAGES = setting('MESSAGES', 20_000);
const SEED = setting('SEED', 1);

const figures = await fuzz({ messages: MESSAGES, seed: SEED });
const rows = Object.entries(figures).map(([name, value]: [string, unknown]) => [
  name,
  Array.isArray(value) ? value.length : (value as number),
]);
printTable([`${MESSAGES} changed messages, seed ${SEED}`, ''], rows);
for (const text of new Set([...figures.rejections, ...figures.wrongErrors])) console.log(text);
const counts = new Map<string, number>();
for (const text of figures.ofLibraries) counts.set(text, (counts.get(text) ?? 0) + 1);
for (const [text, count] of [...counts].toSorted((a, b) => b[1] - a[1])) console.log(count, text);
const { lost, rejections, ofLibraries, connections, copies, wrongErrors } = figures;
const wrong = [rejections, ofLibraries, wrongErrors].flat().length + lost + connections + copies;
process.exit(wrong === 0 ? 0 : 1);
