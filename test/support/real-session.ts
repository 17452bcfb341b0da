import { request } from 'node:http';
import type { LocalPool } from '../../src/local.js';

/** Sends a request to the local pool over a new connection, because a kept-alive connection would count as a leak. */
export async function askPool(
  { baseUrl, pools, token }: LocalPool,
  call: 'acquire' | 'release',
  body: object,
): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const url = `${baseUrl}/browser_pools/${pools[0]}/${call}`;
    const asking = request(url, { method: 'POST', agent: false, headers }, async (response) => {
      let text = '';
      for await (const chunk of response) text += chunk;
      resolve(text === '' ? {} : JSON.parse(text));
    });
    asking.on('error', reject).end(JSON.stringify(body));
  });
}

/** Leases a browser of a local pool over plain HTTP, and returns the session unchanged, for a fake service. */
export async function realSession(local: LocalPool): Promise<Record<string, unknown>> {
  return askPool(local, 'acquire', { acquire_timeout_seconds: 300 });
}
