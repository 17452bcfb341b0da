import { fileURLToPath } from 'node:url';

/** Path of the program that releases leases in a process of its own. */
export const RELEASE_PROCESS = fileURLToPath(new URL('release-process.js', import.meta.url));

/** Its environment: ours, without the loaders that ours may have been started with. */
export function releaseEnvironment(): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _loaders, ...rest } = process.env;
  return rest;
}
