import { endpointOf } from '../../connect/endpoint.js';
import type { BrowserSession } from '../../service/wire.js';
import { ExitStatus } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { interruptible } from '../interruptible.js';
import { describeReplays } from '../lease/describe-replays.js';
import { leaseSession } from '../lease/lease-session.js';
import type { LeaseOptions } from '../lease/options.js';
import { note } from '../note.js';
import { openPool } from '../open-pool.js';
import { openLocalEndpoint } from './local-endpoint.js';
import { runCommand } from './run-command.js';

/** What the command line says about `exec`. */
export interface ExecOptions extends LeaseOptions {
  localEndpoint?: true;
}

/** Runs a command with a leased browser in its environment. Its exit code becomes ours. */
export async function exec(
  poolName: string,
  command: readonly string[],
  options: ExecOptions,
): Promise<void> {
  const code = await interruptible(async (signal, divert) => {
    await using pool = openPool(poolName, options);
    const lease = await leaseSession(pool, { ...options, signal });
    try {
      const environment = environmentOf(lease.session, pool.baseUrl);
      await using endpoint = options.localEndpoint
        ? await openLocalEndpoint(lease.session, pool.baseUrl)
        : undefined;
      signal.throwIfAborted();
      const url = endpoint?.url;
      const whole = command.map((argument) => (url ? argument.replaceAll('{endpoint}', url) : argument));
      return await runCommand(whole, { ...environment, BROWSER_POOL_LOCAL_CDP_WS_URL: url }, divert);
    } finally {
      describeReplays(await lease.end()).forEach(note);
    }
  });
  if (code !== EXIT.ok) throw new ExitStatus(code);
}

/**
 * What the command gets; addresses that would carry their secret over a network in the clear are refused. What this
 * browser has not is unset: inside of another exec it would be that of the browser there.
 */
function environmentOf(session: BrowserSession, baseUrl: string): NodeJS.ProcessEnv {
  return {
    BROWSER_POOL_SESSION_ID: session.session_id,
    BROWSER_POOL_CDP_WS_URL: endpointOf(session, 'cdp', baseUrl),
    BROWSER_POOL_WEBDRIVER_WS_URL: endpointOf(session, 'bidi', baseUrl),
    BROWSER_POOL_LIVE_VIEW_URL: session.browser_live_view_url,
  };
}
