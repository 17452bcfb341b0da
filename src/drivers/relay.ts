import type { WebSocket } from 'ws';
import type { Connector, OpenUrlOptions, BrowserProtocol } from './connector.js';
import { readMessage } from '../wire/message.js';
import { openInFirstPage } from '../wire/page-session.js';
import type { ClientSocket, OpenClient } from './socket.js';
import type { Frame } from '../wire/forms.js';
import { socketTransport } from './transport.js';

/** Bytes that may wait for a slow receiver; beyond them, its sender is not read. */
const MOST_UNSENT = 1024 * 1024;
/** Code of a close frame: a message is not what it must be. */
const INVALID = 1007;
/** Longest command without parameters, in bytes. */
const LONGEST_BARE_COMMAND = 200;

/** What `relay` offers to another program. */
export interface RelayHandles {
  /** The connection of the lease. */
  readonly socket: ClientSocket;
  /** Opens a connection for one client of several. */
  readonly openClient: OpenClient;
}

/**
 * Lets another program use the connection of a lease. No automation library takes part.
 *
 * @param sharesFiles The program may name files of this machine.
 */
export const relay = (sharesFiles: boolean): Connector<RelayHandles> => ({
  library: 'The proxy',
  sharesFiles,
  refusal: () => undefined,
  load: async () => {},
  connect: async ({ socket, protocol, openClient }) => ({
    handles: { socket, openClient },
    ...(protocol === 'cdp' && {
      openUrl: async (_handles: object, url: string, { onlyIfBlank }: OpenUrlOptions) => {
        if (!onlyIfBlank) await openInFirstPage(socket, url);
      },
    }),
    isConnected: () => true,
    cleanup: async () => {},
    disconnect: async () => socket.close('closed-by-us'),
  }),
});

type Send<Data = Frame> = (data: Data, isBinary: boolean) => void;

/** Begins to pass the messages of a browser, or of a part of it, to a client. Returns the other direction. */
export type Channel = (toClient: Send<Frame | string>) => Send;

/** The side of a connection that must not be flooded. */
type Paced = Pick<ClientSocket, 'onSent' | 'unsent' | 'pause' | 'resume'>;

/** Passes messages in both directions until one side ends. A slow receiver slows its sender down: nothing piles up here. */
export function join(client: WebSocket, socket: Paced, open: Channel): void {
  // This side answers commands, too, which a client can send without reading.
  const isFlooded = () => client.bufferedAmount > MOST_UNSENT || socket.unsent > MOST_UNSENT;
  const resumeClient = () => {
    if (client.isPaused && !isFlooded()) client.resume();
  };
  const resumeBoth = () => {
    if (client.bufferedAmount <= MOST_UNSENT) socket.resume();
    resumeClient();
  };
  const toBrowser = open((data, isBinary) => {
    if (client.readyState !== client.OPEN) return;
    client.send(data as Buffer, { binary: isBinary }, resumeBoth);
    if (client.bufferedAmount > MOST_UNSENT) socket.pause();
  });
  socket.onSent(resumeClient);
  client.on('message', (data, isBinary) => {
    // A client that is being disconnected can still send.
    if (client.readyState !== client.OPEN) return;
    try {
      toBrowser(data, isBinary);
    } catch {
      return client.close(INVALID, 'The message can not be read.');
    }
    if (isFlooded()) client.pause();
  });
  client.once('close', () => socket.resume());
}

/** All messages as they are. */
export function wholeSocket(socket: ClientSocket): Channel {
  return (toClient) => {
    socket.onMessage = toClient;
    return (data, isBinary) => socket.send(data, isBinary);
  };
}

/** Passes messages of WebDriver BiDi, whether or not the browser has a session already. */
function bidiSocket(socket: ClientSocket): Channel {
  return (toClient) => {
    const transport = socketTransport(socket, 'bidi');
    transport.onmessage = (text) => toClient(text, false);
    return (data) => transport.send(String(data));
  };
}

/**
 * A browser that its client can't end, because it belongs to the pool.
 *
 * @param onClose Called instead of closing the browser.
 */
export function channelOf(socket: ClientSocket, protocol: BrowserProtocol, onClose: () => void): Channel {
  const isBidi = protocol === 'bidi';
  const open = isBidi ? bidiSocket(socket) : wholeSocket(socket);
  return (toClient) => {
    const toBrowser = open(toClient);
    return (data, isBinary) => {
      const id = idOf(data, isBidi ? 'browser.close' : 'Browser.close');
      if (id === undefined) return toBrowser(data, isBinary);
      toClient(JSON.stringify({ ...(isBidi && { type: 'success' }), id, result: {} }), false);
      onClose();
    };
  };
}

/**
 * Returns the id of a command without parameters that has this method.
 *
 * @throws If it is no message.
 */
function idOf(data: Frame, method: string): number | undefined {
  if (!Buffer.isBuffer(data) || data.length > LONGEST_BARE_COMMAND || !data.includes(method))
    return undefined;
  const command = readMessage(data);
  return command.method === method ? command.id : undefined;
}
