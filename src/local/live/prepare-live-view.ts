import type { OpenSocket } from '../sockets/open-socket.js';
import { LiveSocket } from './live-socket.js';

/** Far above any command: pasted text is the longest. */
const MOST_BYTES = 1024 * 1024;

/** Loads what live views need; the returned function opens their sockets. */
export async function prepareLiveView(): Promise<OpenSocket> {
  const { WebSocketServer } = await import('ws');
  const server = new WebSocketServer({ noServer: true, clientTracking: false, maxPayload: MOST_BYTES });
  return ({ browser: { chromium } }, request, socket, head) => {
    const { searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1');
    const readOnly = (searchParams.get('readOnly') ?? 'false') !== 'false';
    let opened: LiveSocket | undefined;
    server.handleUpgrade(request, socket, head, (websocket) => {
      opened = new LiveSocket(websocket, chromium, readOnly);
    });
    return () => (opened ? opened.cut() : socket.destroy());
  };
}
