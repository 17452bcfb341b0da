import { LinkedAbort, raceAbort, raceEnd } from '../shared/abort.js';
import { duration, MissingLibraryError } from '../shared/errors.js';
import { ConnectError } from '../shared/lease-errors.js';
import { webSocketFault } from '../shared/urls.js';
import type { SpareConnection } from '../service/spare-connection.js';
import type { BrowserSession } from '../service/wire.js';
import type { Connection, Connector, ContextChoice, Protocol } from './connector.js';
import { openSingleEndpoint } from './loopback-endpoint.js';
import { Socket, type SocketEnd } from './socket.js';
import { closeUnresponsivePages } from './unresponsive-pages.js';

export interface ConnectPlan {
  /** The options of the lease. */
  readonly settings: {
    readonly protocol: Protocol;
    readonly context: ContextChoice;
    readonly connectOptions: object;
    readonly connectTimeout: number;
  };
  /** Address of the service: it decides which WebSocket URLs are allowed. */
  readonly baseUrl: string;
  /** A connection that may be open already. */
  readonly spare: SpareConnection;
  /** URL of the page for the callback. */
  readonly pageUrl: string | undefined;
  readonly signal: AbortSignal;
  /** Called with the URLs of unresponsive pages that were closed. */
  readonly onPagesClosed: (urls: string[]) => void;
}

/** A connection with the socket that carries it. */
export interface OpenConnection<Handles> extends Connection<Handles> {
  /** Resolves when the socket has ended, with the first reason. */
  readonly ended: Promise<SocketEnd>;
  /** Closes the socket immediately: no further command reaches the browser. */
  cut(): void;
  /** The socket that carries it. */
  readonly socket: Pick<Socket, 'ping' | 'roundTrip'>;
}

/** Connects to a leased browser until a page is usable. After a failure no socket stays open. */
export async function connectSession<Handles>(
  connector: Connector<Handles>,
  session: BrowserSession,
  plan: ConnectPlan,
): Promise<OpenConnection<Handles>> {
  const { connectTimeout } = plan.settings;
  const limit = new LinkedAbort(plan.signal, connectTimeout);
  const openCdp = (signal: AbortSignal) => openSocket(session, 'cdp', plan.baseUrl, signal);
  const pages = closeUnresponsivePages(openCdp, connectTimeout, plan.onPagesClosed);
  try {
    return await connectOnce(connector, session, plan, limit.signal).catch((error: unknown) => {
      // Closing a page during the connect can make it fail.
      if (!pages.wereClosed() || limit.signal.aborted) throw error;
      return connectOnce(connector, session, plan, limit.signal);
    });
  } catch (error) {
    if (plan.signal.aborted) throw plan.signal.reason;
    if (error instanceof MissingLibraryError) throw error;
    const timeout = new ConnectError(
      `no page became usable within ${duration(connectTimeout)} (option connectTimeout)`,
    );
    throw connectError(connector.library, session.session_id, limit.timedOut ? timeout : error);
  } finally {
    pages.stop();
    limit.dispose();
  }
}

async function connectOnce<Handles>(
  connector: Connector<Handles>,
  session: BrowserSession,
  { settings, baseUrl, spare, pageUrl }: ConnectPlan,
  signal: AbortSignal,
): Promise<OpenConnection<Handles>> {
  const { protocol, context, connectOptions, connectTimeout: timeout } = settings;
  const socket = await Socket.open(trustedUrl(session, protocol, baseUrl), signal, spare);
  const { ended } = socket;
  const cut = () => socket.cut('closed-by-us');
  const endpoint = async () => (await openSingleEndpoint(socket)).url;
  // Not every library detects that its socket has ended.
  const dropped = (how: SocketEnd) => new ConnectError(`the WebSocket ended during the connect (${how})`);
  try {
    const connecting = connector.connect({
      socket,
      protocol,
      context,
      connectOptions,
      pageUrl,
      timeout,
      endpoint,
    });
    return { ...(await raceAbort(raceEnd(connecting, ended, dropped), signal)), ended, cut, socket };
  } catch (error) {
    cut();
    throw error;
  }
}

/** Opens a WebSocket to the session, if its URL may be trusted. */
export async function openSocket(
  session: BrowserSession,
  protocol: Protocol,
  baseUrl: string,
  signal: AbortSignal,
): Promise<Socket> {
  return Socket.open(trustedUrl(session, protocol, baseUrl), signal);
}

/** Returns the session's WebSocket URL for a protocol. */
export function trustedUrl(session: BrowserSession, protocol: Protocol, baseUrl: string): string {
  const field = protocol === 'bidi' ? 'webdriver_ws_url' : 'cdp_ws_url';
  const fault = webSocketFault(session[field], baseUrl);
  if (fault === undefined) return session[field];
  throw new ConnectError(`The session's ${field} ${fault}, so it is not used.`, {
    sessionId: session.session_id,
  });
}

function connectError(library: string, sessionId: string, cause: unknown): ConnectError {
  const status = cause instanceof ConnectError ? cause.status : undefined;
  const why = cause instanceof Error ? cause.message : 'unknown failure';
  const message = `${library} could not connect to the browser of session ${sessionId}: ${why}`;
  return new ConnectError(message, { sessionId, status, cause });
}
