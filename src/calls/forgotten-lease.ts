import { clock } from '../shared/clock.js';
import type { Link } from '../lease/link.js';

/** Milliseconds between two looks. Two in a row must find nothing to do. */
const INTERVAL = 5000;
/** Handles of stdout and stderr. A third one reads stdin, or leads to a parent process. */
const OUTPUT = /^(PipeWrap|TTYWrap)$/;
const MOST_OUTPUTS = 2;
const SOCKET = /^(TCPSocketWrap|TCPServerWrap|TLSWrap)$/;

/** A lease that a caller must release. */
interface Held {
  readonly sessionId: string;
  readonly link: Pick<Link<unknown>, 'connection'>;
  /** Resolves when the release begins. */
  readonly releasing: Promise<void>;
}

const held = new Set<Held>();

/**
 * Warns, once, if only the connections of leases keep this process alive and no call is pending: nobody is left to release
 * the browser, and the process would wait in silence. The event `beforeExit` never comes then.
 */
export function warnIfForgotten(lease: Held): void {
  let looks = 0;
  held.add(lease);
  const look = () => {
    looks = isNothingLeft() ? looks + 1 : 0;
    if (looks < 2) return;
    clock.clearInterval(timer);
    process.emitWarning(
      `Nothing is left to do, but the browser of session ${lease.sessionId} is still leased and keeps this process alive. ` +
        'Call release(), or declare the browser with `await using`.',
      'PooledBrowserWarning',
    );
  };
  const timer = clock.setInterval(look, INTERVAL).unref();
  void lease.releasing.then(() => {
    held.delete(lease);
    clock.clearInterval(timer);
  });
}

function isNothingLeft(): boolean {
  const connections = [...held].map(({ link }) => link.connection);
  if (connections.some(({ socket }) => socket.pendingCalls.length > 0)) return false;
  const ours = connections.reduce((sum, { sockets }) => sum + sockets(), 0);
  const alive = process.getActiveResourcesInfo();
  const outputs = alive.filter((kind) => OUTPUT.test(kind)).length;
  const sockets = alive.filter((kind) => SOCKET.test(kind)).length;
  return outputs <= MOST_OUTPUTS && sockets <= ours && outputs + sockets === alive.length;
}
