// Leases a browser that stays leased for some ms, whatever ends this process. Used by ../late.more.test.ts.
import { BrowserPool } from '../../../src/index.js';
import { coreOf } from '../../../src/pool/pool-core.js';

const [, , way, until] = process.argv;
const pool = new BrowserPool('test');
const core = coreOf(pool);
const { session_id: id } = (await pool.acquire())!;
const lease = { pool: 'test', id: 'lease', keepAlive: true, record: false };
const leasedAt = Date.now();
core.releases.hold(id, core.ticketOf(id, lease), { within: Number(until) });
process.stdout.write(`leased ${leasedAt}\n`);
if (way === 'exit') process.exit(7);
setTimeout(() => {}, 60_000);
