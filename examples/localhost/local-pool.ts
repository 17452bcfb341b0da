import { startLocalPool } from 'pooled-browser/local';

/**
 * Starts a local pool for the tests if the environment names no service. As in the cloud, its browsers do not reach the
 * servers of this machine: Chromium maps the name localhost to a port where nobody listens.
 */
export default async function startPool(): Promise<(() => Promise<void>) | undefined> {
  if (process.env['BROWSER_POOL_BASE_URL']) return undefined;
  const local = await startLocalPool({ args: ['--host-resolver-rules=MAP localhost 127.0.0.1:9'] });
  process.env['BROWSER_POOL_BASE_URL'] = local.baseUrl;
  process.env['BROWSER_POOL_ACCESS_TOKEN'] = local.token;
  return () => local.close();
}
