/** A running local pool. It keeps the process alive, as any server does, until `close()`. */
export interface LocalPool extends AsyncDisposable {
  /** `http://127.0.0.1:<port>`. */
  readonly baseUrl: string;
  /** The access token. Not enumerable: neither `inspect` nor JSON of this object shows it. */
  readonly token: string;
  /**
   * URL of a page for a person, which shows what goes on in all pools. It carries a jwt that is good for thirty days at
   * most, and for that page only. Not enumerable, as the token.
   */
  readonly dashboardUrl: string;
  /** Names of the pools. */
  readonly pools: readonly string[];
  /** Counts of one pool by its name or id; of all pools together without an argument. */
  stats(pool?: string): LocalPoolStats;
  /** Ends every wait, websocket, browser and profile folder. Resolves when all are gone; calling it again is fine. */
  close(): Promise<void>;
}

/** Counts of browsers by state, and totals since the start. */
export interface LocalPoolStats {
  /** Browsers ready to be leased. */
  readonly idle: number;
  /** Browsers that are leased. */
  readonly leased: number;
  /** Browsers that are starting. */
  readonly starting: number;
  /** Acquire requests that are waiting. */
  readonly waiting: number;
  /** Leases granted; those whose response could not be delivered are not counted. */
  readonly granted: number;
  /** Leases given back, with or without reuse. */
  readonly released: number;
  /** Browsers destroyed, for whatever reason. */
  readonly destroyed: number;
  /** Leases that ended because nothing was connected for `timeoutSeconds`. */
  readonly expired: number;
}
