// Calls of one process that each lease a browser and hold it. Arguments: the folder of a built version, the URL of a
// service, calls, ms to hold a session (0: 500 to 2000), seed, who waits for a browser. Prints "ready", and after a line of input the wait of each call in ms.
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const [folder, baseUrl, calls, hold, seed, waits = 'never'] = process.argv.slice(2);
const { BrowserPool, withPooledBrowser } = await import(join(folder, 'dist/index.js'));

const service = {
  name: 'callers',
  idField: 'id',
  waits,
  auth: 'none',
  isTokenOptional: true,
  acquire: () => ({ method: 'POST', path: '/sessions', body: {} }),
  grant: (json) => ({ id: json.id, session: json, cdpUrl: json.url }),
  release: (id) => ({ method: 'DELETE', path: `/sessions/${id}` }),
};
let state = Number(seed);
const random = () => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647;

const connector = {
  library: 'none',
  refusal: () => undefined,
  load: async () => {},
  connect: async () => ({
    handles: {},
    isConnected: () => true,
    cleanup: async () => {},
    disconnect: async () => {},
  }),
};
const options = { connector, replays: 'off', acquireTimeout: 600_000, release: 'destroy' };

const pool = new BrowserPool('callers', { baseUrl, service });
console.log('ready');
await once(process.stdin, 'data');
const times = await Promise.all(
  Array.from({ length: Number(calls) }, async () => {
    const began = performance.now();
    const use = async () => {
      const wait = performance.now() - began;
      await sleep(Number(hold) || 500 + 1500 * random());
      return wait;
    };
    const { value } = await withPooledBrowser(pool, use, options);
    return value;
  }),
);
await pool.close();
console.log(JSON.stringify(times));
process.exit(0);
