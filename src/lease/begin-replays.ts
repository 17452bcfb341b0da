import { LeaseReplays } from './lease-replays.js';
import type { BrowserPool } from '../service/browser-pool.js';
import type { BrowserSession } from '../service/wire.js';
import type { Recorder } from './recorder.js';
import type { Settings } from './settings.js';

/** Begins to keep track of a lease's recordings, and to record it, as the options say. */
export function beginReplays(
  session: BrowserSession,
  {
    pool,
    settings,
    recorder,
    earlier,
  }: {
    pool: BrowserPool;
    settings: Settings;
    recorder: Recorder;
    /** Which recordings there were before the lease, where that is known already. */
    earlier?: readonly string[] | undefined;
  },
): LeaseReplays | undefined {
  const { replays: mode, replaysTimeout: timeout, recording = {} } = settings;
  if (mode === 'off') return undefined;
  return new LeaseReplays({
    pool,
    session,
    timeout,
    earlier,
    recording: mode === 'record' ? recording : undefined,
    onEvent: (event) => {
      recorder.tell(event);
      if ('error' in event) recorder.cleanupErrors.push(event.error);
    },
  });
}
