/** A service that rents the browsers of this machine, with an API of its own. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { BrowserPool } from 'pooled-browser';
import { startLocalPool } from 'pooled-browser/local';
import type { Rental } from './rentals.js';

export async function startRentals(key: string): Promise<{ baseUrl: string } & AsyncDisposable> {
  const local = await startLocalPool();
  const pool = new BrowserPool(local.pools[0]!, { baseUrl: local.baseUrl, token: local.token });
  const open = new Map<string, Rental>();
  const server = createServer((request, response) => {
    const answer = (status: number, json: object) => reply(response, status, json);
    const { pathname, searchParams } = new URL(request.url!, 'http://rentals');
    const number = pathname.split('/')[2] ?? '';
    if (request.headers['x-rental-key'] !== key) return answer(401, { message: 'Wrong key' });
    void (async () => {
      if (request.method === 'POST') {
        let body = '';
        for await (const chunk of request) body += String(chunk);
        const { reference } = JSON.parse(body) as { reference: string };
        const session = await pool.acquire({ acquire_timeout_seconds: 0 });
        if (!session) return answer(429, { message: 'All browsers are rented' });
        const rental = { number: session.session_id, socket: session.cdp_ws_url, reference };
        open.set(rental.number, rental);
        return answer(201, { rental });
      }
      if (request.method === 'DELETE') {
        if (!open.delete(number)) return answer(404, { message: 'No such rental' });
        await pool.release(number, { reuse: false });
        return answer(200, {});
      }
      const wanted = searchParams.get('reference');
      const all = [...open.values()].filter(({ reference }) => wanted === null || reference === wanted);
      return answer(200, { rentals: all });
    })();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await once(server.close(), 'close');
      await pool.close();
      await local.close();
    },
  };
}

function reply(response: ServerResponse, status: number, json: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json));
}
