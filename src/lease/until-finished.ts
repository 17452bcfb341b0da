import { setTimeout as sleep } from 'node:timers/promises';
import { PoolServiceError } from '../shared/service-errors.js';
import { LinkedAbort } from '../shared/abort.js';
import type { BrowserPool } from '../service/browser-pool.js';
import type { Replay } from '../service/wire.js';
import { identify, statusOf, type ReplayResult } from './replay-status.js';

/** Milliseconds between two lists: the first, the longest, and how fast they grow. */
const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 2000;
const GROWTH = 1.5;

/**
 * Asks for the state of these replays until all are finished, or the time is up. Others in the list belong to whoever
 * has leased the browser since, and are not looked at. Never rejects.
 */
export async function untilFinished(
  pool: BrowserPool,
  sessionId: string,
  { ours, timeout, signal }: { ours: ReplayResult; timeout: number; signal: AbortSignal | undefined },
): Promise<ReplayResult> {
  const limit = new LinkedAbort(signal, timeout);
  let result = ours;
  try {
    for (let pause = FIRST_PAUSE; ; pause = Math.min(LONGEST_PAUSE, pause * GROWTH)) {
      await sleep(pause, undefined, { signal: limit.signal });
      result = await refresh(pool, sessionId, { result, signal: limit.signal });
      if (result.replayStatus === 'ready' || isFinal(result.error)) return result;
    }
  } catch {
    // The time is up, or the caller has left: what is known is what there is.
    return result;
  } finally {
    limit.dispose();
  }
}

async function refresh(
  pool: BrowserPool,
  sessionId: string,
  { result, signal }: { result: ReplayResult; signal: AbortSignal },
): Promise<ReplayResult> {
  try {
    const all = await pool.replays(sessionId, { signal });
    const replays = result.replays.map((replay) => newest(replay, all));
    return { replays, replayStatus: statusOf(replays) };
  } catch (error) {
    signal.throwIfAborted();
    return { ...result, error: error as Error };
  }
}

function newest(replay: Replay, all: readonly Replay[]): Replay {
  const id = identify(replay);
  return (id && all.find((other) => identify(other) === id)) || replay;
}

/** A refusal that no later request will change. */
function isFinal(error: Error | undefined): boolean {
  return error instanceof PoolServiceError && error.status < 500 && error.status !== 429;
}
