/**
 * Preloaded into a command: a machine without a browser, until a file says that one was installed; and, where the
 * variables say so, another user or another system.
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
