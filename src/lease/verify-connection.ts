import type { BrowserService, Grant } from '../services/browser-service.js';
import { InvalidOptionError, type ErrorFacts } from '../shared/errors.js';
import type { CheckingConnector, BrowserProtocol } from '../drivers/connector.js';

/**
 * Refuses what the library of a connector can't do.
 *
 * @throws InvalidOptionError
 */
export function verifyConnection(
  { protocol, contextOptions }: { protocol: BrowserProtocol; contextOptions?: object | undefined },
  connector: CheckingConnector | undefined,
): void {
  const refusal = connector?.refusal(protocol);
  if (refusal !== undefined) throw new InvalidOptionError('protocol', refusal);
  if (!contextOptions) return;
  if (!connector?.checkContext)
    throw new InvalidOptionError(
      'contextOptions',
      `The connector of ${connector?.library ?? 'this call'} has no checkContext, which contextOptions needs: open the context in the callback.`,
    );
  // In a job, a function is called for each task, and the connector checks the result.
  if (typeof contextOptions !== 'function') connector.checkContext(contextOptions, protocol);
}

/** How a call, or a client of a proxy, connects. */
export interface ConnectionRequirements {
  readonly protocol: BrowserProtocol;
  readonly connector?: CheckingConnector | undefined;
  /** The option that needs CDP. */
  readonly needsCdp?: string | undefined;
}

/**
 * Refuses, before a lease, what the browsers of a pool are known not to have.
 *
 * @throws InvalidOptionError
 */
export function verifyPool(
  pool: string,
  { protocols }: Pick<BrowserService, 'protocols'>,
  how: ConnectionRequirements,
): void {
  if (protocols) verifyProtocols(`The browsers of pool ${pool} have`, protocols, how, { pool });
}

/**
 * Refuses what a leased browser does not have. A browser without any URL is one that can't be reached. The message is the same for
 * each browser of the pool, so that a test runner reports it once.
 *
 * @throws InvalidOptionError
 */
export function verifyGrant(
  pool: string,
  { id, cdpUrl, bidiUrl }: Pick<Grant, 'id' | 'cdpUrl' | 'bidiUrl'>,
  how: ConnectionRequirements,
): void {
  const protocols = [cdpUrl !== undefined && 'cdp', bidiUrl !== undefined && 'bidi'] as const;
  const given = protocols.filter((one) => one !== false);
  const facts = { pool, sessionId: id };
  if (given.length > 0) verifyProtocols(`The leased browser of pool ${pool} has`, given, how, facts);
}

function verifyProtocols(
  whose: string,
  protocols: readonly BrowserProtocol[],
  { protocol, connector, needsCdp }: ConnectionRequirements,
  facts: ErrorFacts,
): void {
  const only = `${whose} only the protocol ${protocols.join(', ')}`;
  const [first] = protocols;
  if (connector && !protocols.includes(protocol)) {
    const advice = connector.refusal(first!) ?? `Use protocol '${first}'.`;
    throw new InvalidOptionError('protocol', `${only}. ${advice}`, facts);
  }
  if (needsCdp !== undefined && !protocols.includes('cdp'))
    throw new InvalidOptionError(needsCdp, `${only}, and ${needsCdp} needs cdp. Remove the option.`, facts);
}
