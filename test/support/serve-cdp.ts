import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Lease } from '../../src/local/pool/lease.js';
import { prepareCdp } from '../../src/local/sockets/cdp-socket.js';

/** Serves the CDP WebSocket of a lease, for a test without a local pool. */
export async function serveCdp(lease: Lease): Promise<{ url: string; close: () => void }> {
  const server = createServer();
  const open = prepareCdp();
  server.on('upgrade', (request, socket, head) => void open(lease, request, socket as Socket, head));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
