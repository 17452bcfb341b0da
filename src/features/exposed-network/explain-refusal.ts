import { addAdvice } from '../../shared/errors.js';
import { isLoopback } from '../../shared/urls.js';
import { ExposedHosts } from './exposed-hosts.js';

/** How both libraries report that nothing listens at the URL of a navigation. Over WebDriver BiDi, a stack precedes the URL. */
const REFUSED = /net::ERR_CONNECTION_REFUSED(?: at (\S+)|[^]*? at (\w+:\/\/\S+)$)/;
const HINT = 'The leased browser runs on another machine, where this address means that machine.';

/**
 * Adds to the error of a navigation to a loopback address that the browser of this lease does not run on this machine.
 *
 * @param exposed The option `exposeNetwork`: these addresses mean this machine.
 */
export function explainRefusal(
  error: unknown,
  { isElsewhere }: { isElsewhere: boolean },
  exposed?: string,
): void {
  if (!isElsewhere || !(error instanceof Error) || error.message.includes(HINT)) return;
  const [refused, address, last] = REFUSED.exec(error.message) ?? [];
  const url = address ?? last ?? '';
  if (refused === undefined || !URL.canParse(url)) return;
  const { hostname, host } = new URL(url);
  if (!isLoopback(hostname) && !hostname.endsWith('.localhost')) return;
  if (exposed !== undefined && new ExposedHosts(exposed).read(url, 'request') !== undefined) return;
  addAdvice(error, refused, `${HINT} To reach a server of your machine, set exposeNetwork: '${host}'.`);
}
