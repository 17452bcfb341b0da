// Leases browsers from a service that the test plays, in the way that the first argument names. Used by ../ends.more.test.ts
// and ../services.more.test.ts.
import { once } from 'node:events';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { BrowserPool, leaseBrowser } from '../../../dist/index.js';
import { browserless } from '../../../dist/services.js';
import { connector } from './plain.mjs';

// No helper process can start.
if (process.argv[3]?.startsWith('/')) process.execPath = process.argv.splice(3, 1)[0];

const [way, count = '1', life = '4'] = isMainThread ? process.argv.slice(2) : workerData;
const say = (text) => process.stdout.write(`${text}\n`);
let tokens = 0;
/** A JWT of some seconds, with its number. */
const token = () => {
  const now = Date.now() / 1000;
  const claims = { iat: now, exp: now + Number(life), number: ++tokens };
  say(`token ${tokens}`);
  return `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.sig`;
};
const opaque = () => `token-${++tokens}`;
const tokenOf = { 'tokens-exit': token, 'guarded-tokens': token, 'guarded-opaque': opaque }[way];
// No variable names the options of a service.
const service = way === 'guarded-sessions' ? browserless({ session: { ttl: 60_000 } }) : undefined;
const pool = new BrowserPool('test', { token: tokenOf, service });
const options = { connector, replays: 'off', releaseOnCrash: way.startsWith('guarded') };
const lease = (more = {}) =>
  leaseBrowser(pool, {
    ...options,
    onEvent: ({ type }) => type === 'outcome-unknown' && say(type),
    ...more,
  });
const forever = new Promise((resolve) => setTimeout(resolve, 60_000));
/** A line of the input. */
const order = () => once(process.stdin, 'data');

if (way.startsWith('worker') && isMainThread) {
  const worker = new Worker(new URL(import.meta.url), { workerData: process.argv.slice(2) });
  const [end] = await Promise.race([once(process.stdin, 'data'), once(worker, 'exit')]);
  if (String(end) === 'terminate') await worker.terminate();
  if (String(end) === 'exit') process.exit(7);
  await forever;
}
if (way.endsWith('abort')) {
  const caller = new AbortController();
  void order().then(() => caller.abort());
  await lease({ signal: caller.signal }).catch(() => {});
  say('aborted');
  await forever;
}
if (way.endsWith('acquiring')) {
  void lease().catch(() => {});
  if (way !== 'exit-acquiring') await forever;
  await order();
  process.exit(7);
}
await Promise.all(Array.from({ length: Number(count) }, () => lease()));
if (way === 'guarded-opaque') await lease();
say('leased');
if (way === 'mixed-exit') {
  await lease({ releaseOnCrash: true });
  process.exit(7);
}
if (way.endsWith('exit')) {
  if (count === '1') await order();
  process.exit(7);
}
if (way.endsWith('throw'))
  setTimeout(() => {
    throw new Error('uncaught');
  });
if (way === 'guarded') process.stdin.on('data', say);
await forever;
