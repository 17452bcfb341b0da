import { OriginSockets } from '../../src/service/sockets.js';
import { Socket } from '../../src/connect/socket.js';
import * as api from '../../src/index.js';

/** What the simulation takes of the library: its interface, and the two classes that reach for the network. */
export interface Library {
  api: Pick<
    typeof api,
    | 'BrowserPool'
    | 'withPooledBrowser'
    | 'leaseBrowser'
    | 'attachBrowser'
    | 'mapPooledBrowsers'
    | 'ConnectError'
    | 'BrowserLostError'
    | 'CallbackTimeoutError'
  >;
  OriginSockets: typeof OriginSockets;
  Socket: typeof Socket;
}

export const library: Library = { api, OriginSockets, Socket };
