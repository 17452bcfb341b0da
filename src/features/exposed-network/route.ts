import type { LookupFunction } from 'node:net';

/** How a host is reached: options of Node's connections. */
export interface Route {
  readonly lookup?: LookupFunction;
  /**
   * Milliseconds until Node ends the attempt at one address of a host for the next address. After its usual 250, a process that is busy
   * for a moment would end an attempt that has succeeded.
   */
  readonly autoSelectFamilyAttemptTimeout: number;
}

export function routeTo({ hostname }: URL): Route {
  // No address of this machine lets a client wait.
  if (isLocalhost(hostname)) return { lookup: lookupLocalhost, autoSelectFamilyAttemptTimeout: 10_000 };
  return { autoSelectFamilyAttemptTimeout: 2000 };
}

export function isLocalhost(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost');
}

/** A browser resolves these names by itself, to both addresses, and not every system does. */
const lookupLocalhost: LookupFunction = (_hostname, { all }, callback) => {
  const addresses = [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ];
  if (all) return callback(null, addresses);
  callback(null, '127.0.0.1', 4);
};
