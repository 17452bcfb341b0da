import { startLocalPool } from 'pooled-browser/local';

/** Starts a local pool for the tests if the environment names no service. */
export default async function startPool(): Promise<(() => Promise<void>) | undefined> {
  if (process.env['BROWSER_POOL_BASE_URL']) return undefined;
  const local = await startLocalPool({ pools: [{ name: 'default', size: 2 }] });
  process.env['BROWSER_POOL_BASE_URL'] = local.baseUrl;
  process.env['BROWSER_POOL_ACCESS_TOKEN'] = local.token;
  return () => local.close();
}
