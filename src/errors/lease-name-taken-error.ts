import { PooledBrowserError, type ErrorFacts } from './pooled-browser-error.js';

/**
 * The lease's name is taken, and it may be this very call that took it: with a request before, whose outcome is not
 * known (event `outcome-unknown`). The service's refusal is the `cause`.
 */
export class LeaseNameTakenError extends PooledBrowserError {
  override readonly name = 'LeaseNameTakenError' as const;
  declare readonly code: 'ERR_LEASE_NAME_TAKEN';

  /** The name. */
  readonly leaseName: string;

  constructor(message: string, leaseName: string, facts?: ErrorFacts) {
    super(message, 'ERR_LEASE_NAME_TAKEN', facts);
    this.leaseName = leaseName;
  }
}
