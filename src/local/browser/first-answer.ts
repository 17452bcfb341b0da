import { raceAbort, raceTimeout } from '../../shared/abort.js';
import { CdpConnection, type DevToolsAddress } from './cdp-connection.js';

const LONGEST_WAIT = 15_000;

/** Chromium listens a while before it answers. A browser that counts as idle must be ready to be driven. */
export async function waitForFirstAnswer(browser: DevToolsAddress, signal: AbortSignal): Promise<void> {
  const connection = await CdpConnection.open(browser);
  try {
    const closed = connection.closed.then(() => {
      throw new Error('it closed its DevTools connection.');
    });
    const answer = Promise.race([connection.ask('Target.getTargets'), closed]);
    await raceTimeout(
      LONGEST_WAIT,
      () => raceAbort(answer, signal),
      () => new Error(`it did not answer within ${LONGEST_WAIT / 1000} seconds.`),
    );
  } finally {
    connection.close();
  }
}
