import {
  faultInHosts,
  faultInRules,
  LOOPBACK_ADDRESSES,
  readHosts,
  type HostRule,
} from '../../shared/hosts.js';

/**
 * The allowed hosts as Chromium's list of hosts that need no proxy. `<-loopback>` ends Chromium's own rule that the machine itself
 * and link-local addresses need none.
 *
 * @param hosts A list without a fault.
 */
export function bypassListOf(hosts: string): string {
  return ['<-loopback>', ...readHosts(hosts).flatMap(bypassRulesOf)].join(';');
}

function bypassRulesOf({ host, port }: HostRule): string[] {
  if (host !== LOOPBACK_ADDRESSES) return [port === undefined ? host : `${host}:${port}`];
  if (port === undefined) return ['127.0.0.0/8'];
  // A network has no port there, and a star also stands for letters. A host whose last label is a number is an address.
  return Array.from({ length: 256 }, (_, last) => `127.*.${last}:${port}`);
}

/** Returns why a value is no list of hosts that can be allowed; `undefined` if it is one. */
export function faultInAllowedHosts(value: unknown): string | undefined {
  return (
    faultInHosts(value) ??
    faultInRules(value as string, (rule) => (isForAddresses(rule) ? NO_PART : undefined))
  );
}

const NO_PART =
  'whose star could stand for a part of an IP address: write each address, a name with another ending, or * for all hosts';

/** Chromium's star stands for any characters, and addresses consist of digits, dots, hexadecimal digits and colons. */
function isForAddresses(rule: string): boolean {
  const [{ host } = { host: '' }, ...others] = readHosts(rule);
  if (others.length > 0 || !host.includes('*') || host === '*' || host === LOOPBACK_ADDRESSES) return false;
  return /^[\d.*]+$/.test(host) || /^\*[\da-f*]*\*$/.test(host);
}
