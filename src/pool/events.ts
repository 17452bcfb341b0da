import type { ReleaseError } from '../shared/service-errors.js';
import type { StepOf } from '../shared/telemetry.js';

interface RequestedLease {
  /** Id or name of the pool. */
  pool: string;
  /** Name and tags of the acquire request. */
  name?: string;
  tags?: Readonly<Record<string, string>>;
}

/** The events of a pool and their facts, by `type`. */
interface PoolSteps {
  /**
   * The service leased a browser that no call awaits; the pool releases it. The call was aborted, or the
   * response was broken or lost.
   */
  'grant-orphaned': RequestedLease & { sessionId: string };
  /** The outcome of an acquire request is unknown. A browser may be leased until its inactivity timeout. */
  'outcome-unknown': RequestedLease & { error: Error };
  /** A browser was released, or its session no longer exists. */
  released: { pool: string; sessionId: string; released: 'reused' | 'destroyed' };
  /**
   * A browser could not be released, or the outcome is unknown (`error.released`). It may stay leased until its inactivity timeout.
   */
  'release-failed': { pool: string; sessionId: string; error: ReleaseError };
}

/** An event of `BrowserPool`, by its `type`. */
export type PoolEvent = StepOf<PoolSteps>;
