/** Work that goes on after its caller has left: releases of late grants, teardowns after an abort. */
const work = new WeakMap<object, Set<Promise<unknown>>>();

/** Lets `settled(pool)` wait for this work. The work must handle its own failures. */
export function trackWork(pool: object, promise: Promise<unknown>): void {
  const tracked = work.get(pool) ?? new Set();
  work.set(pool, tracked);
  tracked.add(promise);
  const forget = () => tracked.delete(promise);
  promise.then(forget, forget);
}

/** Resolves when no tracked work of the pool is under way. */
export async function workSettled(pool: object): Promise<void> {
  const tracked = work.get(pool);
  while (tracked && tracked.size > 0) await Promise.allSettled(tracked);
}
