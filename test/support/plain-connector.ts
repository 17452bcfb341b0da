import type { Connector } from '../../src/index.js';

/** The callback receives no handles. */
export type PlainHandles = object;

/** A connector to a WebSocket without a browser, for tests of the lease alone. */
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
