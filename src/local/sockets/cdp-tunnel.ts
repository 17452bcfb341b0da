import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { DevToolsAddress } from '../browser/cdp-connection.js';
import { HttpFault } from '../http/http-fault.js';
import type { OpenSocket } from './open-socket.js';
import { refuse } from './refuse.js';

/**
 * Joins a client's socket with Chromium's. The bytes pass as they are, no frame is parsed: a large screenshot costs
 * next to nothing more than on Chromium's own port.
 */
export const openCdpTunnel: OpenSocket = ({ browser: { chromium } }, request, socket, head) => {
  const upstream = connect({ host: '127.0.0.1', port: chromium.port, noDelay: true });
  socket.setNoDelay(true);
  upstream.once('connect', () => {
    upstream.write(upgradeRequest(chromium, request));
    upstream.write(head);
    socket.pipe(upstream).pipe(socket);
    // One side that is gone takes the other along: neither may wait for a peer that will not come back.
    upstream.once('close', () => socket.destroy());
  });
  upstream.once('error', () => {
    if (upstream.connecting)
      refuse(socket, new HttpFault(502, 'bad_gateway', 'The browser does not answer.'));
    else socket.destroy();
  });
  socket.once('close', () => upstream.destroy());
  return () => socket.destroy();
};

/**
 * Written anew: Chromium refuses a foreign Host or Origin, and the client's cookies and authorization are none of its
 * business.
 */
function upgradeRequest({ port, path }: DevToolsAddress, { headers }: IncomingMessage): string {
  const websocket = Object.entries(headers).filter(([name]) => name.startsWith('sec-websocket-'));
  const lines = [
    `GET ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    ...websocket.map(([name, value]) => `${name}: ${String(value)}`),
  ];
  return `${lines.join('\r\n')}\r\n\r\n`;
}
