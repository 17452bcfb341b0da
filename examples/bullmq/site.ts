import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * A site of numbered pages on this machine. The first visit to page 2 is answered with an error, and the first one to
 * page 3 not at all.
 */
export async function openSite(onSilence: () => unknown): Promise<{ url: string } & AsyncDisposable> {
  const visited = new Set<string>();
  const server = createServer(({ url }, response) => {
    const isFirst = !visited.has(url!);
    visited.add(url!);
    if (isFirst && url === '/3') return void onSilence();
    response.statusCode = isFirst && url === '/2' ? 500 : 200;
    response.setHeader('content-type', 'text/html').end(`<title>Page ${url!.slice(1)}</title>`);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await once(server.close(), 'close');
    },
  };
}
