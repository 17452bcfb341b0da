import type { LocalPool } from '../../src/local.js';

/** Leases a browser of a local pool over plain HTTP, and returns the session unchanged, for a fake service. */
export async function realSession(local: LocalPool): Promise<Record<string, unknown>> {
  const response = await fetch(`${local.baseUrl}/browser_pools/${local.pools[0]}/acquire`, {
    method: 'POST',
    headers: { authorization: `Bearer ${local.token}`, 'content-type': 'application/json' },
    body: '{"acquire_timeout_seconds":60}',
  });
  return (await response.json()) as Record<string, unknown>;
}
