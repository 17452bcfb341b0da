// Comes to the stage of a lease that the first argument names, and stays there. Used by ../containers.more.test.ts and
// ../../bench/process-ends.ts.
import { BrowserPool, withPooledBrowser } from '../../../dist/index.js';
import { connector as plain } from './plain.mjs';

const [, , stage, way = ''] = process.argv;
const forever = new Promise((resolve) => setTimeout(resolve, 60_000));
const at = async (name) => {
  if (name !== stage || isLater) return;
  process.stdout.write(`at ${name}\n`);
  await forever;
};
const connector = {
  ...plain,
  connect: async (request) => {
    await at('connect');
    return { ...(await plain.connect(request)), cleanup: () => at('clean') };
  },
};
let isLater = false;
const pool = new BrowserPool('test');
const options = {
  connector,
  releaseOnCrash: way.includes('guarded'),
  pollTimeout: Number(/poll=(\d+)/.exec(way)?.[1] ?? 1000),
  // A signal may interrupt none of these waits.
  releaseTimeout: 60_000,
  replays: 'off',
};
const lease = () => withPooledBrowser(pool, () => at('callback'), options);

if (way.includes('own')) {
  process.on('SIGTERM', async () => {
    process.stdout.write('own handler\n');
    await pool.close();
    isLater = true;
    const other = new BrowserPool('test');
    const { released } = await withPooledBrowser(other, () => 'later', options);
    process.stdout.write(`${released} later\n`);
    process.exit(5);
  });
}
// Whoever reads a later time than that of an event sees that the program has gone on since.
if (way.includes('beats')) setInterval(() => console.log(Date.now()), 50);
if (stage === 'idle') {
  await lease();
  process.stdout.write('at idle\n');
  await forever;
}
const ignored = way.includes('own') ? () => forever : undefined;
for (;;) await lease().catch(ignored);
