// Leases a browser at the service of the environment, and stays. Used by a test in the parent folder.
import { leaseBrowser } from '../../../dist/index.js';

const connector = {
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
await leaseBrowser('any', { connector, releaseOnCrash: true });
process.stdout.write('leased\n');
await new Promise(() => {});
