import { clock, delay } from './clock.js';

/** Time until everything that a lease left must have ended, in ms. */
const END_TIMEOUT = 2500;
/** Time between two checks, in ms. */
const CHECK_INTERVAL = 5;

/** Repeats a check until it succeeds. The last one begins after the timeout: a check can take longer than that on a busy machine. */
export async function until(
  failure: string,
  check: () => Promise<boolean>,
  timeout = END_TIMEOUT,
): Promise<void> {
  const began = clock.now();
  for (;;) {
    const isLast = clock.now() - began > timeout;
    if (await check()) return;
    if (isLast) throw new Error(failure);
    await delay(CHECK_INTERVAL);
  }
}
