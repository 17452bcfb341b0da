import type { BrowserService } from './browser-service.js';

/** The session of a browser without a service: a random id, for messages. */
export interface CdpSession {
  /** Identifies the lease in events and errors. */
  readonly id: string;
}

/**
 * A browser at a fixed address, without a service: `chromium --remote-debugging-port=9222`, or a container. The connection is
 * the lease, one at a time in each process; another process can connect to the same browser. Nothing is destroyed: the lease leaves
 * a new blank page. If it can't, the browser is `'left'`, and the next lease of this process cleans it first, or fails. A detached
 * lease keeps other leases of this process waiting until it is attached and released.
 *
 * @param url http(s) URL of the debugging port, or the WebSocket URL of the browser.
 */
export function cdp(url: string): BrowserService<CdpSession> {
  return {
    name: 'cdp',
    // A query can contain a token, and is no part of the address.
    baseUrl: url.replace(/^ws/, 'http').replace(/[?#].*$/, ''),
    auth: 'none',
    idField: 'id',
    waits: 'always',
    limit: 1,
    acquire: () => undefined,
    grant: (_json, { id }) => ({ id, session: { id }, cdpUrl: url }),
    release: () => undefined,
  };
}
