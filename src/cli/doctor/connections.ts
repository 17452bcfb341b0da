import type { Run } from '../../lease/run.js';
import type { RunOptions } from '../../lease/options.js';
import type { BrowserPool } from '../../service/browser-pool.js';
import { isInstalled } from '../is-installed.js';
import { openPool } from '../open-pool.js';
import { POLL_TIMEOUT } from '../poll-timeout.js';
import type { Case, Check, Result } from './check.js';

/** Milliseconds to a usable page, and those that it may take over a sum. */
const LIMITS = { connectTimeout: 15_000, timeout: 10_000 };
const SUM = '1 + 1';

type Options = Omit<RunOptions, 'protocol' | 'driver'>;

interface Way {
  name: string;
  library: string;
  /** Leases a browser, has a page work out the sum, and gives the browser back. */
  calculate: (pool: BrowserPool, options: Options) => Promise<Run<unknown>>;
}

const WAYS: readonly Way[] = [
  {
    name: 'playwright cdp',
    library: 'playwright-core',
    calculate: async (pool, options) => {
      const { withPooledBrowser } = await import('../../lease/playwright.js');
      return withPooledBrowser(pool, ({ page }) => page.evaluate(SUM), options);
    },
  },
  ...(['cdp', 'bidi'] as const).map((protocol) => ({
    name: `puppeteer ${protocol}`,
    library: 'puppeteer-core',
    calculate: async (pool: BrowserPool, options: Options) => {
      const { withPooledBrowser } = await import('../../lease/puppeteer.js');
      return withPooledBrowser(pool, ({ page }) => page.evaluate(SUM), { ...options, protocol });
    },
  })),
];

/** One lease over each library and protocol, to a page that answers. */
export const connectionChecks: readonly Check[] = WAYS.map((way) => ({
  name: way.name,
  run: (on) => checkConnection(way, on),
}));

async function checkConnection({ library, calculate }: Way, on: Case): Promise<Result> {
  if (on.pool === undefined) return { status: 'skipped', detail: 'not checked: it needs a pool' };
  if (!isInstalled(library)) {
    return { status: 'skipped', detail: `${library} is not installed`, advice: `npm install ${library}` };
  }
  await using pool = openPool(on.pool, on);
  const { acquireTimeout, signal } = on;
  // The first browser that can't be reached is the fault that is looked for.
  const limits = { ...LIMITS, acquireTimeout, pollTimeout: POLL_TIMEOUT, connectAttempts: 1 };
  const run = await calculate(pool, { ...limits, replays: 'off', signal });
  const { value, timings, cleanupErrors } = run;
  const { acquire, connect, callback, release } = timings;
  const times = `acquire ${acquire} ms, connect ${connect} ms, ${SUM} = ${String(value)} in ${callback} ms`;
  const detail = [`${times}, release ${release} ms`, ...cleanupErrors.map(({ message }) => message)];
  return { status: cleanupErrors.length === 0 ? 'ok' : 'note', detail: detail.join('\n') };
}
