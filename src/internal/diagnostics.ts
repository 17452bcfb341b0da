import { channel } from 'node:diagnostics_channel';
import { redact } from './redact.js';

const events = channel('pooled-browser:event');

/** Puts an event on the diagnostics channel `pooled-browser:event`. */
export function publish(event: object): void {
  if (events.hasSubscribers) events.publish(event);
}

/** Calls a listener of the caller's. One that throws must break nothing: it gets a warning. */
export function callListener<Event>(
  listener: ((event: Event) => void) | undefined,
  event: Event,
  option = 'onEvent',
): void {
  if (!listener) return;
  const warn = (error: unknown) => void warnOf(`${option} threw`, error);
  try {
    // An async listener rejects where a plain one throws: unhandled, that would end the process.
    Promise.resolve(listener(event)).catch(warn);
  } catch (error) {
    warn(error);
  }
}

/** Imports node:util only where there is something to show: it takes a tenth of what all of the root takes, or more. */
async function warnOf(what: string, error: unknown): Promise<void> {
  const { inspect } = await import('node:util');
  process.emitWarning(`${what}: ${redact(inspect(error))}`, 'PooledBrowserWarning');
}
