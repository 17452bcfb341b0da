import { setTimeout as sleep } from 'node:timers/promises';
import { startLocalPool } from 'pooled-browser/local';

/** Starts a local pool and ends without closing it. The first argument names how. */
const size = process.argv[2] === 'exit' ? 2 : 1;
const headless = process.argv[2] !== 'windows';
const pool = await startLocalPool({ pools: [{ size, headless }] });
while (pool.stats().idle < size) await sleep(5);
process.stdout.write('ready\n');

const ways = {
  exit: () => process.exit(7),
  wait: () => {},
  windows: () => {},
  'own-listener': () =>
    process.once('SIGINT', () => {
      setTimeout(() => void closeMyself(), 100);
    }),
  // A short form of that package.
  'signal-exit': () => {
    Object.assign(globalThis, { [Symbol.for('signal-exit emitter')]: { count: 1 } });
    const onSignal = () => {
      if (process.listenerCount('SIGTERM') > 1) return;
      process.off('SIGTERM', onSignal);
      process.stdout.write('signal-exit is last\n', () => process.kill(process.pid, 'SIGTERM'));
    };
    process.on('SIGTERM', onSignal);
  },
};

ways[process.argv[2]]();

async function closeMyself() {
  const { idle } = pool.stats();
  await pool.close();
  process.stdout.write(`closed by its own listener, ${idle} idle until then\n`);
  process.exitCode = 5;
}
