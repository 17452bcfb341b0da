import type { CheckedQuirks } from '../options/check-quirks.js';
import type { OpenSocket } from '../sockets/open-socket.js';
import { BidiSocket } from './bidi-socket.js';
import { loadBidiLibrary } from './load-library.js';

const MOST_BYTES = 256 * 1024 * 1024;

/** Loads what BiDi needs; the returned function opens such sockets. */
export async function prepareBidi(kind: CheckedQuirks['bidiSession']): Promise<OpenSocket> {
  const library = await loadBidiLibrary();
  const { WebSocketServer } = await import('ws');
  const server = new WebSocketServer({ noServer: true, clientTracking: false, maxPayload: MOST_BYTES });
  return (lease, request, socket, head) => {
    let opened: BidiSocket | undefined;
    server.handleUpgrade(request, socket, head, (websocket) => {
      opened = new BidiSocket(websocket, library, lease, kind);
    });
    return () => (opened ? opened.cut() : socket.destroy());
  };
}
