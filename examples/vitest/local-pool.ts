import { startLocalPool, type LocalPool } from 'pooled-browser/local';

let local: LocalPool | undefined;

/** Starts a local pool for the tests if the environment names no service. */
export async function setup(): Promise<void> {
  if (process.env['BROWSER_POOL_BASE_URL']) return;
  local = await startLocalPool({ pools: [{ name: 'default', size: 2 }] });
  process.env['BROWSER_POOL_BASE_URL'] = local.baseUrl;
  process.env['BROWSER_POOL_ACCESS_TOKEN'] = local.token;
}

export async function teardown(): Promise<void> {
  await local?.close();
}
