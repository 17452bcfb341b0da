import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findBrowser } from '../../src/local.js';
import { UNSHARE } from './far-browser.js';

/** Where the brands of Chromium look for the policies of their machine. */
const FOLDERS = ['chromium', 'opt/chrome', 'opt/chrome_for_testing'];

/** Makes a program that starts the browser with this policy, which no other browser of this machine has. Returns its path. */
export async function managedBrowser(policy: object): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'managed-'));
  writeFileSync(join(folder, 'policy.json'), JSON.stringify(policy));
  const policies = FOLDERS.map((name) => `"${folder}/etc/${name}/policies/managed"`);
  const copies = policies.map((path) => `mkdir -p ${path} && cp "${folder}/policy.json" ${path}`);
  const steps = [
    `mkdir -p "${folder}/etc"`,
    // Files that only root may read are no matter of a browser.
    `{ cp -a /etc/. "${folder}/etc" 2>/dev/null || true; }`,
    ...copies,
    `mount --bind "${folder}/etc" /etc`,
    `exec "${await findBrowser()}" "$@"`,
  ];
  const script = join(folder, 'browser');
  writeFileSync(
    script,
    `#!/bin/sh\nexec unshare ${UNSHARE.join(' ')} sh -c '${steps.join(' && ')}' sh "$@"\n`,
  );
  chmodSync(script, 0o700);
  return script;
}
