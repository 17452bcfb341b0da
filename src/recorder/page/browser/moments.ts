/** Something at a time in milliseconds. */
interface Moment {
  readonly at: number;
}

/** After a seek, the position of a video is exact to one millisecond. */
const TOLERANCE = 1;

/** Finds the index of the last moment that a position shows; -1 if there is none. @param moments In the order of time. */
export function lastUntil(moments: readonly Moment[], position: number): number {
  return lastWhere(moments, (at) => at <= position + TOLERANCE);
}

/** Finds the time of the next or the previous moment. @param moments In the order of time. */
export function nearest(moments: readonly Moment[], position: number, direction: 1 | -1): number | undefined {
  const previous = () => lastWhere(moments, (at) => at < position - TOLERANCE);
  return moments[direction === 1 ? lastUntil(moments, position) + 1 : previous()]?.at;
}

/** @param holds True for the first moments, and false for all after them. */
function lastWhere(moments: readonly Moment[], holds: (at: number) => boolean): number {
  let [low, high] = [0, moments.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(moments[middle]!.at)) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
