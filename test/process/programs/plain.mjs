/** A connector to a WebSocket without a browser. */
export const connector = {
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
