// Leases one browser, the first of its process, and prints the ms from the call to a usable page. Arguments: the entry
// (playwright or puppeteer), and what to import before the call, with commas.
import { BrowserPool } from 'pooled-browser';

const [entry, early] = process.argv.slice(2);
const { withPooledBrowser } = await import(`pooled-browser/${entry}`);
for (const name of early.split(',').filter(Boolean)) await import(name);
const pool = new BrowserPool('bench');
const began = performance.now();
await withPooledBrowser(pool, () => console.log(performance.now() - began), { replays: 'off' });
await pool.close();
