import type { AnySocket, Client } from '../wire/client.js';
import type { SocketEnd } from '../wire/socket.js';
import { Wire, type WireOptions } from '../wire/wire.js';
import type { Protocol } from '../wire/forms.js';

export type { AnySocket } from '../wire/client.js';
export type { SocketEnd } from '../wire/socket.js';

/** The connection of a lease, for its library. */
export type Socket = Client;
export const Socket = {
  open: async (url: URL, signal: AbortSignal, options?: WireOptions): Promise<Client> =>
    (await Wire.open(url, signal, options)).main,
};

/** @internal A connection for commands of our own, with CDP. */
export type CdpSocket = Client;
/** @internal Opens a further connection to the browser, with CDP. */
export type OpenCdp = (signal: AbortSignal) => Promise<Client>;
/** Opens a connection for a further client of the browser, whose messages pass the layers of the lease. Default: its protocol. */
export type OpenClient = (signal: AbortSignal, protocol?: Protocol) => Promise<AnySocket>;
export type { SocketEnd as End };
