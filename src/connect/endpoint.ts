import { ConnectError } from '../shared/lease-errors.js';
import { isLoopback } from '../shared/loopback.js';
import type { BrowserSession } from '../service/wire.js';
import type { Protocol } from './protocol.js';

/**
 * The session's websocket URL for a protocol, if it may be trusted: whoever answers there drives our browser and
 * sees its jwt, so it must be wss; plain ws only between loopback addresses.
 */
export function endpointOf(session: BrowserSession, protocol: Protocol, baseUrl: string): string {
  const field = protocol === 'bidi' ? 'webdriver_ws_url' : 'cdp_ws_url';
  const fault = endpointFault(session[field], baseUrl);
  if (!fault) return session[field];
  throw new ConnectError(`The session's ${field} ${fault}: it is not used.`, {
    sessionId: session.session_id,
  });
}

function endpointFault(endpoint: string, baseUrl: string): string | undefined {
  if (!URL.canParse(endpoint)) return 'is no URL';
  const url = new URL(endpoint);
  if (url.protocol !== 'wss:' && url.protocol !== 'ws:') return 'is no websocket URL';
  if (url.username || url.password) return 'holds a user name or a password';
  if (url.protocol === 'wss:') return undefined;
  if (!isLoopback(url.hostname)) return 'is not encrypted (ws) and leaves this machine';
  return isLoopback(new URL(baseUrl).hostname)
    ? undefined
    : 'points to this machine, but the service is elsewhere';
}
