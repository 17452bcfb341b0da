import { sendOnce } from '../net/http.js';
import { explain } from '../net/reachability.js';
import { isSuccess } from '../net/status.js';
import type { Grant } from '../services/browser-service.js';
import { isRecord, parseJson } from '../shared/json.js';
import { ConnectError } from '../shared/lease-errors.js';
import { routeTo, type Trust } from '../shared/network.js';
import { webSocketFault } from '../shared/urls.js';
import type { BrowserProtocol } from './connector.js';

/** The headers of a request to a browser. Those of the service go to its own address only. */
export function headersTo(
  url: URL,
  { headers: own }: Pick<Grant, 'headers'>,
  { baseUrl, headers }: Trust,
): Record<string, string> {
  const isAtService = new URL(url.href.replace(/^ws/, 'http')).origin === baseUrl.origin;
  return { ...(isAtService && headers), ...own };
}

/** Returns the session's WebSocket URL for a protocol. */
export async function trustedUrl(
  grant: Grant,
  protocol: BrowserProtocol,
  trust: Trust,
  signal?: AbortSignal,
): Promise<URL> {
  const { id: sessionId, cdpUrl, bidiUrl } = grant;
  const given = protocol === 'bidi' ? bidiUrl : cdpUrl;
  const name = protocol === 'bidi' ? 'WebDriver BiDi' : 'CDP';
  const fail = (fault: string, unreachedBy?: Error) =>
    new ConnectError(`The session's ${name} URL ${fault}.`, { sessionId, unreachedBy });
  if (given === undefined) {
    const other = protocol === 'bidi' ? "protocol 'cdp'" : "protocol 'bidi'";
    throw new ConnectError(`The session has no ${name} URL. Use ${other}.`, { sessionId });
  }
  // The http address of a debugging port is trusted as its WebSocket is, before anything is sent there.
  const isPort = /^https?:/i.test(given);
  const address = isPort ? given.replace(/^http/i, 'ws') : given;
  if (!URL.canParse(address)) throw fail('is not a URL, so it is not used');
  const url = new URL(address);
  const fault = webSocketFault(url, trust);
  if (fault !== undefined) throw fail(`${fault}, so it is not used`);
  if (!isPort) return url;
  const found = await discover(url, { grant, trust, signal, fail });
  // A browser that is started again has another WebSocket, and is not the one of the lease.
  Object.assign(grant, { [protocol === 'bidi' ? 'bidiUrl' : 'cdpUrl']: found.href });
  return found;
}

/** The WebSocket URL of a debugging port. Behind a container or a proxy, the port shows an address that is not its own. */
async function discover(
  address: URL,
  how: {
    grant: Grant;
    trust: Trust;
    signal: AbortSignal | undefined;
    fail: (fault: string, unreachedBy?: Error) => ConnectError;
  },
): Promise<URL> {
  const { grant, trust, signal, fail } = how;
  const page = new URL(address);
  page.protocol = address.protocol === 'wss:' ? 'https:' : 'http:';
  page.pathname = `${address.pathname.replace(/\/+$/, '')}/json/version`;
  page.hash = '';
  try {
    const headers = headersTo(page, grant, trust);
    const route = routeTo(page, trust.network);
    const { status, body } = await sendOnce({ url: page, headers }, { route, signal });
    if (!isSuccess(status)) throw new Error(`status ${status}`);
    const version = parseJson(body);
    const named = new URL(String(isRecord(version) && version['webSocketDebuggerUrl']));
    if (!/^wss?:$/.test(named.protocol)) throw new Error('it names no WebSocket');
    // Only the path is the port's to choose.
    const found = new URL(address);
    found.pathname = named.pathname;
    found.search = named.search || address.search;
    found.hash = '';
    return found;
  } catch (error) {
    const unreachedBy = NOT_CONNECTED.test((error as NodeJS.ErrnoException).code ?? '')
      ? (error as Error)
      : undefined;
    throw fail(
      `names no WebSocket: ${page.origin}/json/version has no answer (${explain(error)})`,
      unreachedBy,
    );
  }
}

/** Codes of errors before a connection was open. */
const NOT_CONNECTED = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)$/;
