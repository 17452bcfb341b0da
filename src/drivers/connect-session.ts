import type { Grant } from '../services/browser-service.js';
import { LinkedAbort, onAbort, raceAbort, raceEnd } from '../shared/abort.js';
import { duration, InvalidOptionError, MissingLibraryError } from '../shared/errors.js';
import { ConnectError } from '../shared/lease-errors.js';
import { shortened } from '../shared/redact.js';
import type { CleanOptions } from '../clean/browser-state.js';
import type { Connector } from './connector.js';
import type { CleanPlan, ConnectPlan, Drivers, OpenConnection } from './connection.js';
import { cleanOverCdp, OpenBrowser, openSocket, openWire } from './open-browser.js';
import type { SocketEnd } from './socket.js';
import { openInFirstPage } from '../wire/page-session.js';
import { newShared } from '../wire/wire.js';
import { closeUnresponsivePages } from '../clean/unresponsive-pages.js';
import { hasFakeClock, isError } from '../shared/globals.js';

/** What a lease asks of this folder. */
export const drivers: Drivers = { connectSession, cleanSession, openUrl };

export async function connectSession<Handles>(
  connector: Connector<Handles>,
  grant: Grant,
  plan: ConnectPlan,
): Promise<OpenConnection<Handles>> {
  const { connectTimeout } = plan.settings;
  const limit = new LinkedAbort(plan.signal, connectTimeout);
  const openCdp = (signal: AbortSignal) =>
    openSocket(grant, { protocol: 'cdp', trust: plan.trust, signal, kind: 'own' });
  // A second WebSocket would be another lease, of a browser with other pages.
  const pages = grant.endsWithConnection
    ? undefined
    : closeUnresponsivePages(openCdp, connectTimeout, plan.onPagesClosed);
  try {
    return await connectOnce(connector, grant, plan, limit.signal).catch((error: unknown) => {
      // Closing a page during the connect can make it fail.
      if (!pages?.wereClosed() || limit.signal.aborted) throw error;
      return connectOnce(connector, grant, plan, limit.signal);
    });
  } catch (error) {
    if (plan.signal.aborted) throw plan.signal.reason;
    if (error instanceof MissingLibraryError || error instanceof InvalidOptionError) throw error;
    const timeout = new ConnectError(
      `no page became usable within ${duration(connectTimeout)} (option connectTimeout)${hasFakeClock() ? FAKE_CLOCK : ''}`,
    );
    throw connectError(connector.library, grant.id, limit.timedOut ? timeout : error);
  } finally {
    pages?.stop();
    limit.dispose();
  }
}

/** Opens the sockets of a connection, and lets the library connect. */
async function connectOnce<Handles>(
  connector: Connector<Handles>,
  grant: Grant,
  plan: ConnectPlan,
  signal: AbortSignal,
): Promise<OpenConnection<Handles>> {
  const { protocol } = plan.settings;
  const { trust, spare } = plan;
  const shared = newShared(plan.onMalformed);
  const wire = await openWire(grant, { protocol, trust, signal, spare, shared });
  const socket = wire.main;
  const browser = new OpenBrowser(grant, plan, wire, signal);
  try {
    await browser.extend(connector);
    const connecting = browser.connect(connector);
    return await raceAbort(raceEnd(connecting, socket.ended, dropped), signal);
  } catch (error) {
    browser.drop();
    throw error;
  }
}

/** Not every library detects that its socket has ended. */
function dropped(how: SocketEnd): ConnectError {
  return new ConnectError(`the WebSocket ended during the connect (${how})`);
}

async function cleanSession(
  grant: Grant,
  { settings, trust, signal }: CleanPlan,
  how: CleanOptions,
): Promise<void> {
  const limit = new LinkedAbort(signal, settings.connectTimeout);
  const { signal: during } = limit;
  const over = new Promise<void>((resolve) => onAbort(during, resolve));
  try {
    const socket = await openSocket(grant, { protocol: 'cdp', trust, signal: during, kind: 'own' });
    await raceAbort(cleanOverCdp(socket, over, how), during);
  } catch (cause) {
    if (signal.aborted) throw signal.reason;
    const message =
      'The browser still has data of an earlier lease, and could not be cleaned: restart the browser.';
    throw new ConnectError(message, { sessionId: grant.id, cause });
  } finally {
    limit.dispose();
  }
}

async function openUrl(grant: Grant, how: Pick<ConnectPlan, 'trust' | 'signal'>, url: string): Promise<void> {
  const socket = await openSocket(grant, { protocol: 'cdp', ...how });
  await openInFirstPage(socket, url).finally(() => socket.cut('closed-by-us'));
}

const FAKE_CLOCK =
  '. Fake timers are set, and automation libraries wait for the timers of Node while they connect: set fake timers after the browser is leased';

/** Longest reason in the message of a `ConnectError`, in characters. */
const LONGEST_REASON = 4000;

function connectError(library: string, sessionId: string, cause: unknown): ConnectError {
  const { status, unreachedBy } = cause instanceof ConnectError ? cause : {};
  const why = isError(cause) ? cause.message : 'unknown failure';
  // The browser can have written a part of it.
  const shown = shortened(why, LONGEST_REASON);
  const message = `${library} could not connect to the browser of session ${sessionId}: ${shown}`;
  return new ConnectError(message, { sessionId, status, unreachedBy, cause });
}
