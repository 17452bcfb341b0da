/** What features say of their options for each other: `shares` of one, `shared` of the call for all. */
export interface SharedFacts {
  /** The browser may load nothing before the lease has connected. */
  readonly areHostsLimited: boolean;
}
