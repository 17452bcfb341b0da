// Leases a browser at the service of the environment, and stays. Used by a test in the parent folder.
import { leaseBrowser } from '../../../dist/index.js';
import { connector } from './plain.mjs';

await leaseBrowser('any', { connector, releaseOnCrash: true });
process.stdout.write('leased\n');
await new Promise(() => {});
