import type { BrowserState } from '../clean/browser-state.js';
import type { PoolCore } from '../pool/pool-core.js';
import type { Grant } from '../services/browser-service.js';
import type { AnyStep, StageTrace } from '../shared/telemetry.js';
import type { FeatureContext } from './feature.js';
import type { CallSettings } from './options.js';

/** One call, for the heart: plain data and functions. `Step` are the events that it may emit. */
export interface CallContext<Step extends AnyStep = AnyStep> extends Pick<
  FeatureContext<Step>,
  'signal' | 'emit' | 'addError'
> {
  /** The options of the heart. */
  readonly settings: CallSettings;
  /**
   * Adds the time of the work to a stage, also if it fails, and traces it.
   *
   * @param facts What the trace says. @param after What it says besides when the work has succeeded.
   */
  readonly time: <T>(
    stage: string,
    work: () => Promise<T>,
    facts?: Partial<StageTrace>,
    after?: (value: T) => Partial<StageTrace>,
  ) => Promise<T>;
  /** Ends the work. Only the first reason counts. */
  readonly abort: (reason: unknown) => void;
}

/** A call with a leased browser, for the heart. Each browser of a call has a context of its own. */
export interface LeaseContext<Step extends AnyStep = AnyStep, Session extends object = object>
  extends Omit<CallContext<Step>, 'time'>, FeatureContext<Step> {
  readonly pool: PoolCore<Session>;
  readonly grant: Grant<Session>;
  readonly session: Session;
  /** The state in which the lease leaves the browser. */
  readonly state: BrowserState;
}
