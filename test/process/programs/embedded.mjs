// Leases a browser from a local pool of its own, and waits to be ended. Run by the tests beside this folder.
import { BrowserPool } from '../../../dist/index.js';
import { startLocalPool } from '../../../dist/local.js';
import { leaseBrowser } from '../../../dist/puppeteer.js';

const local = await startLocalPool();
const pool = new BrowserPool('default', { baseUrl: local.baseUrl, token: local.token });
await leaseBrowser(pool);
process.stdout.write('leased\n');
if (process.argv[2] === 'exit') process.exit(7);
