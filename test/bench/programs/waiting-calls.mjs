// Calls that wait for a browser which never comes. Arguments: the folder of a built version, and the number of calls. Prints the bytes of
// the heap for each of them, and the ms in which all of them have ended after an abort, as JSON. Needs --expose-gc.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const [folder, calls] = process.argv.slice(2);
const { BrowserPool, withPooledBrowser } = await import(join(folder, 'dist/index.js'));
const server = createServer(() => {});
await once(server.listen(0, '127.0.0.1'), 'listening');
const pool = new BrowserPool('waiting', {
  baseUrl: `http://127.0.0.1:${server.address().port}`,
  token: 'none',
});
const connector = {
  library: 'none',
  refusal: () => undefined,
  load: async () => {},
  connect: async () => ({}),
};
const abort = new AbortController();
const ended = [];
const options = { connector, replays: 'off', signal: abort.signal };
const call = () => ended.push(withPooledBrowser(pool, () => {}, options).catch(() => {}));
const settle = async () => {
  for (let turn = 0; turn < 5; turn++) {
    await sleep(200);
    globalThis.gc();
  }
};
// The first ones load the code.
for (let count = 0; count < 100; count++) call();
await settle();
const before = process.memoryUsage().heapUsed;
for (let count = 0; count < Number(calls); count++) call();
await settle();
const bytes = (process.memoryUsage().heapUsed - before) / Number(calls);
if (process.env.SNAPSHOT) process.getBuiltinModule('node:v8').writeHeapSnapshot(process.env.SNAPSHOT);
const began = performance.now();
abort.abort(new Error('all'));
await Promise.all(ended);
console.log(JSON.stringify({ bytes, abort: performance.now() - began }));
process.exit(0);
