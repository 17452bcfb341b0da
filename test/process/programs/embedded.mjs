// Leases a browser from its own local pool, and waits for its end. Used by the tests in the parent folder.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BrowserPool } from '../../../dist/index.js';
import { startLocalPool } from '../../../dist/local.js';
import { leaseBrowser } from '../../../dist/puppeteer.js';

const local = await startLocalPool();
const pool = new BrowserPool('default', { baseUrl: local.baseUrl, token: local.token });
await leaseBrowser(pool);
if (process.argv[2] === 'late-files') writeLateFiles();
process.stdout.write('leased\n');
if (process.argv[2] === 'exit') process.exit(7);

/** Writes files to the profile as soon as its first file is removed. Ends after a minute in any case. */
function writeLateFiles() {
  const folders = readdirSync(tmpdir()).map((name) => join(tmpdir(), name, 'Default'));
  const folder = folders.find((path) => existsSync(path));
  writeFileSync(join(folder, '0-first'), '');
  const script = 'while [ -e "$1/0-first" ]; do :; done; for i in $(seq 300); do : > "$1/late-$i"; done';
  spawn('timeout', ['60', 'sh', '-c', script, 'sh', folder], { stdio: 'ignore' });
}
