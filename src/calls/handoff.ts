import type { PooledLease } from '../features/create-features.js';
import { readHandoff, type HandoffAnswer, type HandoffFacts } from '../features/handoff/options.js';

/** @internal The part of a lease that a hand-off uses. */
export type HandedLease = Pick<PooledLease<unknown>, 'features' | 'pause'>;

/** @internal Returns the method of a lease. */
export function handoffOf(lease: HandedLease): HandoffFacts['handoff'] {
  return (options) => {
    const asking = askPerson(lease, options);
    // The end of a lease must not end the process of a callback that has not waited for the answer.
    asking.catch(() => {});
    return asking;
  };
}

/** @internal @throws As `handoff`. @param options What `handoff` takes, unchecked. */
export async function askPerson(
  lease: HandedLease,
  options: unknown,
  how?: Omit<Parameters<HandedLease['features']['handoff']['ask']>[1], 'pause'>,
): Promise<HandoffAnswer> {
  return lease.features.handoff.ask(readHandoff(options), { ...how, pause: () => lease.pause() });
}
