/**
 * The work's outcome, or the signal's reason as soon as it aborts.
 * Work that succeeds after the abort is handed to `onLate`: exactly one of the two gets the value.
 */
export function raceAbort<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
  onLate?: (value: T) => void,
): Promise<T> {
  if (!signal) return work;
  return new Promise<T>((resolve, reject) => {
    // A signal's reason may be any value: it is passed on as it is.
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    work.then(
      (value) => {
        signal.removeEventListener('abort', onAbort);
        if (signal.aborted) onLate?.(value);
        resolve(value);
      },
      (error: unknown) => {
        signal.removeEventListener('abort', onAbort);
        reject(error);
      },
    );
  });
}

/** The work's outcome within `milliseconds`; else what `onTimeout` returns is thrown. */
export async function raceTimeout<T>(
  milliseconds: number,
  work: () => Promise<T>,
  onTimeout: () => Error,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeUp = new Promise<never>((_resolve, reject) => {
    timer = startTimer(milliseconds, () => reject(onTimeout()));
  });
  try {
    return await Promise.race([work(), timeUp]);
  } finally {
    clearTimeout(timer);
  }
}

/** The work's outcome, or, when something ends before that, the error that `onEnd` makes of it. */
export async function raceEnd<T, End>(
  work: Promise<T>,
  ended: Promise<End>,
  onEnd: (end: End) => Error,
): Promise<T> {
  let isSettled = false;
  const settled = work.finally(() => (isSettled = true));
  // Everything ends at some time: no error is made, with its stack, that nobody is told of.
  const end = ended.then((how) => (isSettled ? settled : Promise.reject(onEnd(how))));
  return Promise.race([settled, end]);
}

/** `setTimeout` fires at once for anything past its range; this waits for ever instead. */
export function startTimer(milliseconds: number, onEnd: () => void): NodeJS.Timeout | undefined {
  return milliseconds > LONGEST_TIMER ? undefined : setTimeout(onEnd, milliseconds);
}

/** The longest that `setTimeout` can wait, in ms. */
export const LONGEST_TIMER = 2 ** 31 - 1;
