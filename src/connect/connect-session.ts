import { ConnectError } from '../shared/lease-errors.js';
import { MissingLibraryError } from '../shared/errors.js';
import { LinkedAbort, raceAbort, raceEnd } from '../shared/abort.js';
import type { BrowserSession } from '../service/wire.js';
import type { Connection, Connector, ContextChoice } from './connector.js';
import { endpointOf } from './endpoint.js';
import type { Protocol } from './protocol.js';
import { FrozenPageCure } from './frozen-page-cure.js';
import { Socket, type SocketEnd } from './socket.js';

export interface ConnectPlan {
  protocol: Protocol;
  context: ContextChoice;
  driver: object;
  /** Milliseconds until a page must be usable. */
  connectTimeout: number;
  /** Address of the page to hand out, where there is such a page. */
  pageUrl?: string | undefined;
  /** Address of the service: what it may send us to depends on where it is. */
  baseUrl: string;
  signal: AbortSignal;
  /** Told of pages that were closed because they kept the driver from connecting. */
  onFrozenPages: (urls: string[]) => void;
}

/** A connection, and the socket below it. */
export interface OpenConnection<Handles> extends Connection<Handles> {
  /** Resolves when the socket has ended, whoever ended it. */
  readonly ended: Promise<SocketEnd>;
  /** Cuts the socket: nothing that is still under way reaches the browser. */
  cut(): void;
}

/** Connects to a leased browser, up to a usable page, within the time limit. On failure no socket stays open. */
export async function connectSession<Handles>(
  connector: Connector<Handles>,
  session: BrowserSession,
  plan: ConnectPlan,
): Promise<OpenConnection<Handles>> {
  const limit = new LinkedAbort(plan.signal, plan.connectTimeout);
  const cure = new FrozenPageCure(session, plan);
  try {
    return await connectOnce(connector, session, plan, limit.signal).catch((error: unknown) => {
      // Closing a page under the driver's hands can break its connect.
      if (!cure.closedPages || limit.signal.aborted) throw error;
      return connectOnce(connector, session, plan, limit.signal);
    });
  } catch (error) {
    if (plan.signal.aborted) throw plan.signal.reason;
    if (error instanceof MissingLibraryError) throw error;
    const late = new ConnectError(`no page became usable within ${plan.connectTimeout} ms`);
    throw connectError(connector.library, session.session_id, limit.timedOut ? late : error);
  } finally {
    cure.stop();
    limit.dispose();
  }
}

async function connectOnce<Handles>(
  connector: Connector<Handles>,
  session: BrowserSession,
  { baseUrl, protocol, context, driver, pageUrl, connectTimeout: timeout }: ConnectPlan,
  signal: AbortSignal,
): Promise<OpenConnection<Handles>> {
  const socket = await Socket.open(endpointOf(session, protocol, baseUrl), signal);
  const { ended } = socket;
  const cut = () => socket.cut('closed-by-us');
  // Not every driver notices that its socket is gone.
  const dropped = (how: SocketEnd) => new ConnectError(`the websocket ended while connecting (${how})`);
  try {
    const connecting = connector.connect({ socket, protocol, context, driver, pageUrl, timeout });
    return { ...(await raceAbort(raceEnd(connecting, ended, dropped), signal)), ended, cut };
  } catch (error) {
    cut();
    throw error;
  }
}

function connectError(library: string, sessionId: string, cause: unknown): ConnectError {
  const status = cause instanceof ConnectError ? cause.status : undefined;
  const why = cause instanceof Error ? cause.message : 'unknown failure';
  const message = `${library} could not connect to the browser of session ${sessionId}: ${why}`;
  return new ConnectError(message, { sessionId, status, cause });
}
