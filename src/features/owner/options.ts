import { checksOf, flag, optional } from '../../shared/options.js';

/** Whether a lease says who has it. */
export interface OwnerOption {
  /**
   * `false`: without the tag `pooled-browser-owner`, which has the host name and the process id, by which the command `leases`
   * finds the leases of a crashed machine.
   * @default true
   */
  owner?: boolean | undefined;
}

export const ownerChecks = checksOf<OwnerOption>()({ owner: optional(flag(), true) });
