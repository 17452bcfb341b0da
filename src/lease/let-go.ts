import type { OpenConnection } from '../connect/connect-session.js';
import type { SocketEnd } from '../connect/socket.js';
import { SweepError } from '../shared/lease-errors.js';
import { raceEnd, raceTimeout } from '../shared/abort.js';

/** Milliseconds for closing the pages and contexts of a lease, and for the answer of those that stay. */
const SWEEP_TIMEOUT = 5000;
/** Milliseconds for the driver to let go. The socket is cut after that. */
const DISCONNECT_TIMEOUT = 2000;

/**
 * Closes what was opened over a connection, in due time.
 *
 * @throws SweepError when not all of it could be closed, or what stays does not answer.
 */
export async function sweep(connection: OpenConnection<unknown>, sessionId: string): Promise<void> {
  // Not every driver notices that its socket is gone.
  const dropped = (how: SocketEnd) => new SweepError(`The websocket ended (${how})`, { sessionId });
  const late = () => new SweepError(`The browser did not follow within ${SWEEP_TIMEOUT} ms`, { sessionId });
  try {
    await raceTimeout(SWEEP_TIMEOUT, () => raceEnd(connection.sweep(), connection.ended, dropped), late);
  } catch (cause) {
    throw new SweepError('Not all pages of the lease could be closed.', { sessionId, cause });
  }
}

/** Ends a connection, in due time. Whatever the driver says, nothing passes the socket afterwards: that is what counts. */
export async function disconnect(connection: OpenConnection<unknown>): Promise<void> {
  const late = () => new Error(`The driver did not disconnect within ${DISCONNECT_TIMEOUT} ms`);
  await raceTimeout(DISCONNECT_TIMEOUT, () => connection.disconnect(), late).catch(() => {});
  connection.cut();
}
