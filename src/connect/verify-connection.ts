import type { BrowserService } from '../services/browser-service.js';
import { InvalidOptionError } from '../shared/errors.js';
import type { CheckingConnector, Protocol } from './connector.js';

/**
 * Refuses what the library of a connector can't do.
 *
 * @throws InvalidOptionError
 */
export function verifyConnection(
  { protocol, contextOptions }: { protocol: Protocol; contextOptions?: object | undefined },
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

/**
 * Refuses, before a lease, what the browsers of a pool are known not to have.
 *
 * @param needsCdp The option that needs CDP.
 * @throws InvalidOptionError
 */
export function verifyProtocol(
  pool: string,
  { protocols }: Pick<BrowserService, 'protocols'>,
  { protocol, connector, needsCdp }: HowToConnect,
): void {
  if (!protocols) return;
  const only = `The browsers of pool ${pool} have only the protocol ${protocols.join(', ')}`;
  const [first] = protocols;
  if (connector && !protocols.includes(protocol)) {
    const advice = connector.refusal(first!) ?? `Use protocol '${first}'.`;
    throw new InvalidOptionError('protocol', `${only}. ${advice}`);
  }
  if (needsCdp !== undefined && !protocols.includes('cdp'))
    throw new InvalidOptionError(needsCdp, `${only}, and ${needsCdp} needs cdp. Remove the option.`);
}

interface HowToConnect {
  readonly protocol: Protocol;
  readonly connector: CheckingConnector | undefined;
  readonly needsCdp: string | undefined;
}
