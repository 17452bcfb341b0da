// Leases a browser and never releases it. With the argument busy, it has something else to do. Used by ../forgotten-lease.real.test.ts.
import { leaseBrowser } from '../../../dist/index.js';
import { connector } from './plain.mjs';

await leaseBrowser('pool', { connector, replays: 'off' });
if (process.argv[2] === 'busy') setInterval(() => {}, 1000);
console.log('leased');
