/** Delays in a cycle. */
const STEPS = 50;
/** Cycles as long as the first one. */
const SAME = 3;
/** Cycles of which each is twice as long as the one before. */
const LONGER = 9;

/**
 * Yields delays in ms for aborts before and after a response: 150 below 5 ms, and longer ones until `isEnough`, because
 * a busy machine may need more time for each response.
 */
export function* abortSweep(isEnough: () => boolean): Generator<number> {
  for (let cycle = 0; cycle < SAME || !isEnough(); cycle++) {
    const doubled = Math.max(0, cycle - SAME + 1) % (LONGER + 1);
    for (let step = 0; step < STEPS; step++) yield (step / STEPS) * 5 * 2 ** doubled;
  }
}

/** Waits for a delay by iterations of the event loop, or until `isOver`. A timer would round it to milliseconds. */
export async function turnsFor(delay: number, isOver: () => boolean): Promise<void> {
  const end = performance.now() + delay;
  while (performance.now() < end && !isOver()) await new Promise(setImmediate);
}
