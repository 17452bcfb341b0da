/** What is examined. */
export interface Case {
  baseUrl?: string;
  /** Id or name of the pool; without one, nothing is leased. */
  pool: string | undefined;
  /** Milliseconds. */
  acquireTimeout: number;
  signal: AbortSignal;
}

/** What a check found. `note`: worth knowing, and no fault; `skipped`: it could not, or need not, be checked. */
export interface Result {
  status: 'ok' | 'note' | 'failed' | 'skipped';
  detail: string;
  /** What to do about it. */
  advice?: string;
}

export interface Finding extends Result {
  check: string;
  /** Milliseconds that the check took. */
  elapsed: number;
}

export interface Check {
  name: string;
  /** Without it the checks after it make no sense. */
  isVital?: boolean;
  run: (on: Case) => Result | Promise<Result>;
}
