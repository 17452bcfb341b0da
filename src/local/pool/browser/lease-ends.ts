import type { Badge } from '../../../shared/page/browser/format.js';
import type { ServedLeaseEnd } from '../served-lease.js';

/** How pages show the end of a lease. */
export const LEASE_ENDS: Readonly<Record<ServedLeaseEnd, Badge>> = {
  reused: ['Released', 'good'],
  released: ['Released', 'good'],
  deleted: ['Destroyed', 'warn'],
  replaced: ['Released', 'good'],
  flushed: ['Destroyed', ''],
  inactive: ['Expired', 'bad'],
  exited: ['Crashed', 'bad'],
  closed: ['Pool closed', ''],
};
