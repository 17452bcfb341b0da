// Leases a browser and then ends in the way that its first argument names. Used by the tests in the parent folder.
import { BrowserPool, leaseBrowser, withPooledBrowser } from '../../../dist/index.js';
import { connector as plain } from './plain.mjs';

const [, , ending] = process.argv;
const pool = new BrowserPool('test', {});
const connector = {
  ...plain,
  connect: async (request) => {
    const connection = await plain.connect(request);
    return { ...connection, handles: { disconnect: connection.disconnect } };
  },
};
const lease = await leaseBrowser(pool, { connector, releaseOnCrash: ending === 'watched' });
process.stdout.write('leased\n');

const endings = {
  hang: () => new Promise(() => {}),
  watched: () => new Promise(() => {}),
  exit: () => process.exit(7),
  'exit-after-run': async () => {
    await lease.release();
    await withPooledBrowser(pool, () => {}, { connector, awaitRelease: false });
    process.exit(7);
  },
  throw: () =>
    setTimeout(() => {
      throw new Error('uncaught');
    }),
  reject: () => void Promise.reject(new Error('unhandled')),
  // Nothing keeps the process alive, and the browser is not released.
  empty: () => lease.disconnect(),
  'own-handler': () => {
    process.on('SIGTERM', () => {
      process.stdout.write('my own handler\n');
      setTimeout(() => process.exit(3), 100);
    });
    process.stdout.write('ready\n');
    return new Promise(() => {});
  },
  release: async () => {
    await lease.release();
    await pool.close();
  },
};
await endings[ending]();
