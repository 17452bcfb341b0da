import { clock } from '../shared/clock.js';
import type { CdpClient, EventListeners } from './cdp-client.js';

/** Milliseconds in which the objects that a page logs are collected. */
const INTERVAL = 1000;

/**
 * Frees the objects that pages log, and the errors that they throw: a session in which the domain Runtime is enabled keeps them as long
 * as their page. The listeners of a client that reads no console.
 */
export function freeLoggedObjects(cdp: () => CdpClient): EventListeners {
  const waiting = new Set<string>();
  const free = (_params: object, session = '') => {
    if (waiting.has(session)) return;
    waiting.add(session);
    const release = () => {
      waiting.delete(session);
      cdp()
        .send('Runtime.releaseObjectGroup', { objectGroup: 'console' }, session)
        .catch(() => {});
    };
    clock.setTimeout(release, INTERVAL).unref();
  };
  return { 'Runtime.consoleAPICalled': free, 'Runtime.exceptionThrown': free };
}
