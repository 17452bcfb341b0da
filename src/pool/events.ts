import type { ReleaseError } from '../shared/service-errors.js';
import type { StepOf } from '../shared/telemetry.js';

/** The requested lease of an acquire request. */
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
   * The service leased a browser after the call was aborted, or in a response that was broken or lost; the pool releases the
   * browser.
   */
  'grant-orphaned': RequestedLease & { sessionId: string };
  /** The outcome of an acquire request is unknown; a browser may be leased until its inactivity timeout. */
  'outcome-unknown': RequestedLease & { error: Error };
  /** A browser was released, or its session no longer exists. */
  released: { pool: string; sessionId: string; released: 'reused' | 'destroyed' };
  /**
   * A browser stays leased until its inactivity timeout, or the outcome of its release is unknown (`error.released`).
   */
  'release-failed': { pool: string; sessionId: string; error: ReleaseError };
}

/** An event of `BrowserPool`, by its `type`. */
export type PoolEvent = StepOf<PoolSteps>;
