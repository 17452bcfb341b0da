/** Which objects are observed: those of the whole browser, of one context, or a page with its pop-ups. */
export type NotedPart = 'browser' | 'context' | 'page';

/** A call of the automation library. */
export interface NotedCall {
  /** The call without typed values and secrets, as `page.fill("#email")`. */
  readonly text: string;
  /** When the call began, by the monotonic clock of this library, in ms. */
  readonly at: number;
}

/**
 * Receives the end of a noted call.
 *
 * @param failure The first line of the error, without typed values; undefined for a call that succeeded.
 */
export type OnCallEnd = (failure: string | undefined) => void;
