import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * Serves numbered pages on this machine. The first request for page 2 fails, and the first request for page 3 gets no
 * answer.
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
