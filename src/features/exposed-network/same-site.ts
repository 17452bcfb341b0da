import { isIP } from 'node:net';

/**
 * Whether two hosts are of one site. Of the names that exposed hosts usually have, the last two labels are the site: public suffixes of
 * several labels, as `co.uk`, are not known here.
 */
export function areOfOneSite(one: URL, other: URL): boolean {
  return siteOf(one) === siteOf(other);
}

function siteOf({ hostname }: URL): string {
  const isAddress = isIP(hostname) !== 0 || hostname.startsWith('[');
  return isAddress ? hostname : hostname.split('.').slice(-2).join('.');
}
