import type { IncomingMessage } from 'node:http';
import type { LiveMode } from '../pages/messages.js';
import type { Lease } from '../pool/lease.js';
import type { PoolSet } from '../pool/pool-set.js';
import type { OpenSocket } from '../sockets/open-socket.js';
import { LiveSocket } from './live-socket.js';
import { liveViewUrl, watchUrl } from './live-view-url.js';

/** Far above any command: pasted text is the longest. */
const MOST_BYTES = 1024 * 1024;

/** What the jwt of a live view allows. */
export interface LiveRights {
  readonly mayControl: boolean;
}

/** Loads what live views need; the returned function opens their sockets. */
export async function prepareLiveView(pools: PoolSet, { mayControl }: LiveRights): Promise<OpenSocket> {
  const { WebSocketServer } = await import('ws');
  const server = new WebSocketServer({ noServer: true, clientTracking: false, maxPayload: MOST_BYTES });
  return (lease, request, socket, head) => {
    const mode = mayControl ? chosenMode(pools, lease, request) : Promise.resolve({ readOnly: true });
    let opened: LiveSocket | undefined;
    server.handleUpgrade(request, socket, head, (websocket) => {
      opened = new LiveSocket(websocket, lease.browser.chromium, mode);
    });
    return () => (opened ? opened.cut() : socket.destroy());
  };
}

/** Who may control the browser only watches, too, with `?readOnly=true` in the URL; and may change that at any time. */
async function chosenMode(pools: PoolSet, lease: Lease, { url = '/' }: IncomingMessage): Promise<LiveMode> {
  const { searchParams } = new URL(url, 'http://127.0.0.1');
  const readOnly = (searchParams.get('readOnly') ?? 'false') !== 'false';
  return { readOnly, otherUrl: await (readOnly ? liveViewUrl : watchUrl)(pools, lease) };
}
