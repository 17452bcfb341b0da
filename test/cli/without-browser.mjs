/**
 * Preloaded into a command: hides the browsers of this machine until the file TEST_INSTALLED exists, and replaces the
 * user and the system by TEST_USER and TEST_SYSTEM.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const { TEST_INSTALLED: installed, TEST_USER: user, TEST_SYSTEM: system } = process.env;
const { accessSync, existsSync, readFileSync } = fs;

fs.accessSync = (path, mode) => {
  if (/chrom/i.test(String(path)) && !existsSync(installed)) throw new Error(`No ${path} here`);
  accessSync(path, mode);
};
fs.readFileSync = (path, ...rest) =>
  path === '/etc/os-release' && system ? `ID=${system}\n` : readFileSync(path, ...rest);
if (user) process.getuid = () => Number(user);

syncBuiltinESMExports();
