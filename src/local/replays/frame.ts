/** One picture of a page. */
export interface Frame {
  /** Milliseconds since the recording started. */
  readonly at: number;
  readonly jpeg: Buffer;
}
