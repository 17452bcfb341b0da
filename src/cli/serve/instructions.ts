import type { Paint } from '../paint.js';

/** What runs, and what a client needs to use it. */
export interface Serving {
  baseUrl: string;
  /** The access token; missing where it came from the environment. */
  token?: string;
  pools: readonly { name: string; size: number }[];
  /** Of the page that shows them; whoever has it sees everything, so it is for the person at this terminal. */
  dashboardUrl: string;
}

/** Tells a person how to use the pools. The only place that ever shows the token: it is what the person needs. */
export function instructions({ baseUrl, token, pools, dashboardUrl }: Serving, paint: Paint): string {
  const list = pools.map(({ name, size }) => `${name} (${size} ${size === 1 ? 'browser' : 'browsers'})`);
  const known = paint('dim', '# BROWSER_POOL_ACCESS_TOKEN: the one of this environment is required.');
  return [
    paint('bold', `Serving ${list.join(', ')} at ${baseUrl}`),
    '',
    'In another terminal:',
    '',
    `  export BROWSER_POOL_BASE_URL=${baseUrl}`,
    token === undefined ? `  ${known}` : `  export BROWSER_POOL_ACCESS_TOKEN=${token}`,
    '',
    'And in your code:',
    '',
    `  withPooledBrowser('${pools[0]!.name}', async ({ page }) => { … })`,
    '',
    'Watch them in your browser:',
    '',
    `  ${dashboardUrl}`,
    '',
    'Ctrl-C ends it.',
  ].join('\n');
}
