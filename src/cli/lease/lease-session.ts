import { acquireSession } from '../../lease/acquire-session.js';
import { checkRetryOptions } from '../../lease/backoff.js';
import { LeaseReplays } from '../../lease/lease-replays.js';
import type { ReplayResult } from '../../lease/replay-status.js';
import { OwnedSession } from '../../lease/owned-session.js';
import { Recorder } from '../../lease/recorder.js';
import type { Released } from '../../lease/run.js';
import type { BrowserPool } from '../../service/browser-pool.js';
import type { BrowserSession } from '../../service/wire.js';
import { note } from '../note.js';
import { POLL_TIMEOUT } from '../poll-timeout.js';
import { LeaseNotes } from './lease-notes.js';
import type { LeaseOptions } from './options.js';

/** Milliseconds. */
const RELEASE_TIMEOUT = 10_000;
const REPLAYS_TIMEOUT = 10_000;

/** A leased browser that others drive: nothing of ours is connected to it. Whoever gets one owes `end`. */
export interface SessionLease extends AsyncDisposable {
  readonly session: BrowserSession;
  /** Lists what was recorded and gives the browser back, once. Never rejects; what fails is told on stderr. */
  end(): Promise<LeaseTail>;
}

export interface LeaseTail extends ReplayResult {
  released: Released;
}

/** Leases a browser. From here on it is given back however this process ends. */
export async function leaseSession(
  pool: BrowserPool,
  { signal, ...options }: LeaseOptions & { signal: AbortSignal },
): Promise<SessionLease> {
  const { name, tag: tags, startUrl: start_url, acquireTimeout } = options;
  const recorder = new Recorder(pool.idOrName, new LeaseNotes(acquireTimeout).add);
  const plan = {
    request: { ...(name !== undefined && { name }), ...(tags && { tags }), ...(start_url && { start_url }) },
    acquireTimeout,
    pollTimeout: POLL_TIMEOUT,
    retry: checkRetryOptions(),
    signal,
    onEvent: recorder.tell,
  };
  const session = await acquireSession(pool, plan).catch((error: unknown) => {
    if (signal.aborted) note(CALLED_OFF);
    throw error;
  });
  const owned = new OwnedSession(pool, session, recorder, options.watch ?? false);
  const replays =
    options.replays === 'off'
      ? undefined
      : new LeaseReplays({
          pool,
          session,
          timeout: REPLAYS_TIMEOUT,
          recording: options.replays === 'record' ? {} : undefined,
          onEvent: recorder.tell,
        });
  let ended: Promise<LeaseTail> | undefined;
  const end = () => (ended ??= endLease(owned, replays, options.release));
  return { session, end, [Symbol.asyncDispose]: async () => void (await end()) };
}

const CALLED_OFF =
  'Waits for the answer to the request under way, some seconds: a browser that it grants is given back. ' +
  'A second signal does not wait.';

/** Which recordings are ours is settled first: once it is back, the browser's next lease has the same session id. */
async function endLease(
  owned: OwnedSession,
  replays: LeaseReplays | undefined,
  choice: LeaseOptions['release'],
): Promise<LeaseTail> {
  await replays?.stopRecording();
  const recorded = (await replays?.collect()) ?? OFF;
  const released = await owned.release(choice, RELEASE_TIMEOUT);
  const finished = replays?.isRecording ? await replays.finish(recorded, undefined) : recorded;
  return { ...finished, released };
}

const OFF: ReplayResult = { replays: [], replayStatus: 'off' };
