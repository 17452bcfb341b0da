/** Its events. */
export interface PendingCallsSteps {
  /**
   * Calls had no result yet when the lease ended. Probably an `await` is missing. `methods` are the
   * protocol commands that they had sent; `message` is a sentence for a log.
   */
  'pending-calls': { sessionId: string; methods: readonly string[]; message: string };
}
