/** Whether a file could not be written because its disk, or what its user may have of it, is full. */
export function isDiskFull(error: unknown): boolean {
  return FULL.has((error as NodeJS.ErrnoException).code);
}

const FULL = new Set<string | undefined>(['ENOSPC', 'EDQUOT']);
