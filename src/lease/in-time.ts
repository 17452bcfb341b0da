import { raceEnd, raceTimeout } from '../shared/abort.js';
import { duration } from '../shared/errors.js';
import type { OpenConnection } from '../drivers/connection.js';
import type { SocketEnd } from '../drivers/socket.js';

/** Does work that needs the browser, and rejects when its connection ends: not every library notices that. */
export function inTime<T>(
  { ended }: Pick<OpenConnection<unknown>, 'ended'>,
  milliseconds: number,
  work: () => Promise<T>,
): Promise<T> {
  const dropped = (how: SocketEnd) => new Error(`The WebSocket ended (${how}).`);
  const late = () => new Error(`The browser did not respond within ${duration(milliseconds)}.`);
  return raceTimeout(milliseconds, () => raceEnd(work(), ended, dropped), late);
}
