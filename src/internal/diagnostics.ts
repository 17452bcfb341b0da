import { channel } from 'node:diagnostics_channel';

const events = channel('pooled-browser:event');

/** Puts an event on the diagnostics channel `pooled-browser:event`. */
export function publish(event: object): void {
  if (events.hasSubscribers) events.publish(event);
}

/** Calls a listener of the caller's. One that throws must break nothing: it gets a warning. */
export function callListener<Event>(listener: ((event: Event) => void) | undefined, event: Event): void {
  try {
    listener?.(event);
  } catch (error) {
    process.emitWarning(`onEvent threw: ${String(error)}`, 'PooledBrowserWarning');
  }
}
