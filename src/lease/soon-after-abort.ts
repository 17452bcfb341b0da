import { raceAbort } from '../shared/abort.js';

/** Milliseconds that an aborted call may still take, so that in the usual case the browser is back before it rejects. */
const ABORT_GRACE = 1000;

/**
 * The work's outcome; after an abort the signal's reason, at the latest `ABORT_GRACE` ms later. Work that is still
 * giving a browser back then goes on behind the scenes.
 */
export async function soonAfterAbort<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  if (!signal) return work;
  const grace = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = () => {
    timer = setTimeout(() => grace.abort(signal.reason), ABORT_GRACE);
  };
  signal.addEventListener('abort', onAbort);
  if (signal.aborted) onAbort();
  try {
    return await raceAbort(work, grace.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}
