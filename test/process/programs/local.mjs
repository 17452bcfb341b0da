// Leases from `baseUrl: 'local'` in the way that its first argument names. Used by ../local-service.more.test.ts.
import { Socket } from 'node:net';
import { BrowserPool } from '../../../dist/index.js';
import { leaseBrowser, withPooledBrowser } from '../../../dist/puppeteer.js';

const [, , way, owner] = process.argv;
const ways = {
  /** With the name of the pool, so that nothing closes the pool. */
  async runs() {
    let started = 0;
    let bothStarted;
    const both = new Promise((resolve) => (bothStarted = resolve));
    const sessions = await Promise.all(
      [1, 2, 3].map(async () => {
        const { value, session } = await withPooledBrowser('default', async ({ page }) => {
          // Two of the three runs have a browser at the same time.
          if (++started === 2) bothStarted();
          await both;
          return page.evaluate('6 * 7');
        });
        return `${session.session_id} ${value}`;
      }),
    );
    return [...new Set(sessions)];
  },
  async closed() {
    const pool = new BrowserPool('mine', { baseUrl: 'local', local: { size: 1 } });
    const { value, acquireAttempts } = await withPooledBrowser(pool, ({ page }) => page.evaluate('6 * 7'));
    await pool.close();
    return [pool.baseUrl, value, acquireAttempts];
  },
  async shared() {
    const pool = new BrowserPool('shared', { baseUrl: 'local', local: { size: 1, owner: Number(owner) } });
    const { session } = await withPooledBrowser(pool, ({ page }) => page.title());
    await pool.close();
    return [session.session_id];
  },
  /** As with a library that refuses the connections of this process. */
  async unreachable() {
    Socket.prototype.connect = function connect() {
      const refused = { code: 'ECONNREFUSED', syscall: 'connect' };
      process.nextTick(() => this.destroy(Object.assign(new Error('connect ECONNREFUSED'), refused)));
      return this;
    };
    return ways.shared();
  },
  async records() {
    const options = { replays: 'record', replaysTimeout: 50_000 };
    const { session, replays } = await withPooledBrowser('default', ({ page }) => page.title(), options);
    return [session.session_id, replays[0].replay_view_url];
  },
  /** In a run that is awaited, and with a lease whose calls are. */
  async waits() {
    const evaluating = ({ page }) => {
      process.stdout.write('waiting\n');
      return page.evaluate('new Promise(() => {})');
    };
    const lease = await leaseBrowser('default');
    await Promise.all([withPooledBrowser('default', evaluating), evaluating(lease)]);
  },
  async hang() {
    await leaseBrowser('default');
    process.stdout.write('leased\n');
    return new Promise((resolve) => setTimeout(resolve, 60_000));
  },
};
await ways[way]().then(
  (lines) => process.stdout.write(lines.map((line) => `${line}\n`).join('')),
  ({ name, code, message }) => process.stdout.write(`${name} ${code}: ${message}\n`),
);
