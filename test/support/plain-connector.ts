import type { Connector } from '../../src/index.js';

/** What the callback gets of it: nothing. */
export type PlainHandles = object;

/** A connector to a websocket with no browser behind it: for what is about the lease alone. */
export const plainConnector: Connector<PlainHandles> = {
  library: 'plain',
  refusal: () => undefined,
  load: async () => {},
  connect: async ({ socket }) => ({
    handles: {},
    isConnected: () => true,
    cleanup: async () => {},
    disconnect: async () => socket.close('closed-by-us'),
  }),
};
