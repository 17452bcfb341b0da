/** An automation library without pages: its browser is only a WebSocket. */
export const connector = {
  library: 'played',
  refusal: () => undefined,
  load: async () => {},
  connect: async ({ socket }) => {
    let isConnected = true;
    void socket.ended.then(() => (isConnected = false));
    return {
      handles: {},
      openWorkspace: async () => ({ handles: {}, reset: async () => true, close: async () => {} }),
      isConnected: () => isConnected,
      cleanup: async () => {},
      disconnect: async () => socket.close('closed-by-us'),
    };
  },
};
