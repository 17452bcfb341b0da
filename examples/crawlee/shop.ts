import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Serves a shop of three pages on this machine. */
export async function openShop(): Promise<{ url: string } & AsyncDisposable> {
  const server = createServer((request, response) => {
    const name = request.url === '/' ? 'Shop' : request.url!.slice(1);
    const links = '<a href="/Flowers">Flowers</a> <a href="/Seeds">Seeds</a>';
    response.setHeader('content-type', 'text/html').end(`<title>${name}</title>${links}`);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await once(server.close(), 'close');
    },
  };
}
