// Leases a browser at the service of the environment, and stays. Used by a test in the parent folder.
import { BrowserPool, leaseBrowser } from '../../../dist/index.js';
import { browserless } from '../../../dist/services.js';
import { connector } from './plain.mjs';

// The variables can't name the options of a service.
const service =
  process.argv[2] === 'browserless sessions' ? browserless({ session: { ttl: 60_000 } }) : undefined;
await leaseBrowser(service ? new BrowserPool('any', { service }) : 'any', {
  connector,
  releaseOnCrash: true,
});
process.stdout.write('leased\n');
await new Promise(() => {});
