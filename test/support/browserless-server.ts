import type { Socket as NetSocket } from 'node:net';
import { WebSocketServer } from 'ws';
import { relay } from './contract-server.js';
import { TOKEN } from './fake-service.js';
import { Site } from './site.js';

/**
 * Starts a server that starts a browser for each connection, and refuses those beyond its one slot.
 *
 * @param options `browserUrl`: WebSocket URL of a real browser; by default, no command is answered. `port`: its port.
 */
export async function startBrowserless({ browserUrl, port }: { browserUrl?: string; port?: number } = {}) {
  const site = new Site((_request, response) => response.writeHead(404).end());
  await site.listen(port);
  let refused = 0;
  const faults: string[] = [];
  const sockets = new WebSocketServer({ noServer: true });
  const urls: URL[] = [];
  let most = 0;
  site.server.on('upgrade', (request, socket, head) => {
    const url = new URL(request.url!, 'http://localhost');
    const refuse = (status: string) => void socket.end(`HTTP/1.1 ${status}\r\n\r\n`);
    const fault = faults.shift();
    if (fault === 'reset') return void (socket as NetSocket).resetAndDestroy();
    if (fault !== undefined) return refuse(fault);
    if (url.searchParams.get('token') !== TOKEN) return refuse('401 Unauthorized');
    if (sockets.clients.size > 0) {
      refused++;
      return refuse('429 Too Many Requests');
    }
    urls.push(url);
    return sockets.handleUpgrade(request, socket, head, (client) => {
      // ws counts only the clients that it accepted itself.
      sockets.clients.add(client);
      client.on('close', () => sockets.clients.delete(client));
      most = Math.max(most, sockets.clients.size);
      if (browserUrl !== undefined) relay(client, browserUrl);
    });
  });
  return {
    urls,
    /** What the next connections get instead of a browser: a status with its words, or `reset`. */
    faults,
    most: () => most,
    /** Connections that were refused because there was no place. */
    refused: () => refused,
    baseUrl: site.url,
    /** Closes all connections, as at the end of their time. */
    cut: () => sockets.clients.forEach((client) => client.close()),
    /** Browsers that are connected now. */
    active: () => sockets.clients.size,
    [Symbol.asyncDispose]: async () => {
      for (const client of sockets.clients) client.terminate();
      await site[Symbol.asyncDispose]();
    },
  };
}
