import { ConnectError, MissingLibraryError } from '../errors/index.js';
import { LinkedAbort } from '../internal/linked-abort.js';
import { raceAbort, startTimer } from '../internal/race.js';
import type { BrowserSession } from '../service/wire.js';
import { closeFrozenPages } from './close-frozen-pages.js';
import type { Connection, Connector, ContextChoice } from './connector.js';
import { endpointOf } from './endpoint.js';
import type { Protocol } from './protocol.js';
import { Socket, type SocketEnd } from './socket.js';

export interface ConnectPlan {
  protocol: Protocol;
  context: ContextChoice;
  driver: object;
  /** Milliseconds until a page must be usable. */
  connectTimeout: number;
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
  const stopCure = cureWhenSlow(session, plan);
  let socket: Socket | undefined;
  try {
    socket = await Socket.open(endpointOf(session, plan.protocol, plan.baseUrl), limit.signal);
    const { ended } = socket;
    const cut = () => socket!.cut('closed-by-us');
    const connection = await connectOver(connector, socket, plan, limit.signal);
    return { ...connection, ended, cut };
  } catch (error) {
    socket?.cut('closed-by-us');
    if (plan.signal.aborted) throw plan.signal.reason;
    const { library } = connector;
    const cause = limit.timedOut
      ? new ConnectError(`no page became usable within ${plan.connectTimeout} ms`)
      : error;
    throw cause instanceof MissingLibraryError ? cause : connectError(library, session.session_id, cause);
  } finally {
    stopCure();
    limit.dispose();
  }
}

/** A connect that takes this long may be held up by a frozen page. */
const SLOW_CONNECT = 4000;

/** Once connecting is slow, closes the pages that don't answer. The pages of a quick browser cost no round trip. */
function cureWhenSlow(session: BrowserSession, { baseUrl, connectTimeout, onFrozenPages }: ConnectPlan): () => void {
  const cure = new AbortController();
  const timer = startTimer(Math.min(SLOW_CONNECT, connectTimeout / 3), () => {
    const endpoint = endpointOf(session, 'cdp', baseUrl);
    closeFrozenPages(endpoint, cure.signal).then(
      (urls) => urls.length > 0 && onFrozenPages(urls),
      // The time limit of the connect tells what there is to tell.
      () => {},
    );
  });
  return () => {
    clearTimeout(timer);
    cure.abort();
  };
}

/** The driver's part. A socket that ends meanwhile ends it too: not every driver notices. */
function connectOver<Handles>(
  connector: Connector<Handles>,
  socket: Socket,
  { protocol, context, driver, connectTimeout: timeout }: ConnectPlan,
  signal: AbortSignal,
): Promise<Connection<Handles>> {
  const connecting = connector.connect({ socket, protocol, context, driver, timeout });
  const dropped = socket.ended.then((end) => {
    throw new ConnectError(`the websocket ended while connecting (${end})`);
  });
  return raceAbort(Promise.race([connecting, dropped]), signal);
}

function connectError(library: string, sessionId: string, cause: unknown): ConnectError {
  const status = cause instanceof ConnectError ? cause.status : undefined;
  const why = cause instanceof Error ? cause.message : 'unknown failure';
  const message = `${library} could not connect to the browser of session ${sessionId}: ${why}`;
  return new ConnectError(message, { sessionId, status, cause });
}
