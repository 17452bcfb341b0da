import type { Grant } from '../services/browser-service.js';
import type { SpareConnection } from '../net/spare-connection.js';
import { LinkedAbort, onAbort, raceAbort, raceEnd } from '../shared/abort.js';
import { duration, InvalidOptionError, MissingLibraryError } from '../shared/errors.js';
import { ConnectError } from '../shared/lease-errors.js';
import { shortened } from '../shared/redact.js';
import type { Trust } from '../shared/network.js';
import { isLoopback } from '../shared/urls.js';
import { CdpClient } from './cdp-client.js';
import { cleanBrowser } from './clean-browser.js';
import { BidiWatch, cleanOverBidi, hasCdp } from './clean-over-bidi.js';
import type { Connection, Connector, ConnectRequest, ContextChoice, Protocol } from './connector.js';
import { DownloadWatch, type PlanOfDownloads } from './downloads.js';
import { MessageFilter, type MessageRules } from './message-filter.js';
import { Extensions, type ConnectAddition } from './extension.js';
import { openSharedEndpoint, openSingleEndpoint } from './loopback-endpoint.js';
import { PageStarts } from './page-starts.js';
import { Socket, type CdpSocket, type OpenCdp, type OpenClient, type SocketEnd } from './socket.js';
import { createTemporaryFolder } from './temporary-folder.js';
import { headersTo, trustedUrl } from './trusted-url.js';
import { closeUnresponsivePages } from './unresponsive-pages.js';

export { openInFirstPage } from './session-socket.js';

export interface ConnectPlan {
  /** The options of the lease. */
  readonly settings: {
    readonly protocol: Protocol;
    readonly context: ContextChoice;
    readonly contextOptions?: object | undefined;
    readonly connectOptions: object;
    readonly connectTimeout: number;
  };
  /** Decides which WebSocket URLs are allowed. */
  readonly trust: Trust;
  /** A connection that may be open already. */
  readonly spare: SpareConnection;
  /** URL of the page for the callback. */
  readonly pageUrl: string | undefined;
  readonly signal: AbortSignal;
  /** Called with the URLs of unresponsive pages that were closed. */
  readonly onPagesClosed: (urls: string[]) => void;
  /** Called with the name of an event of the browser that can't be read, and was dropped. */
  readonly onMisfit?: (name: string) => void;
  /** Called when a page of the browser's own context is opened or navigated. */
  readonly onOwnContextUsed: () => void;
  /** Returns whether a fresh context may take the place of the browser's own one. */
  readonly replaceOwnContext: () => boolean;
  /** What the features of the lease add. */
  readonly additions: readonly ConnectAddition[];
}

/** A connection with the socket that carries it. */
export interface OpenConnection<Handles> extends Connection<Handles> {
  /** Resolves when the socket has ended, with the first reason. */
  readonly ended: Promise<SocketEnd>;
  /** Closes the socket immediately: no further command reaches the browser. */
  cut(): void;
  /**
   * Takes the browser from the library, and removes everything that the lease left there.
   *
   * @throws If something may be left.
   */
  clean(how: { isOwnContextUsed: boolean }): Promise<void>;
  /** The downloads of the browser. Undefined over WebDriver BiDi without a CDP URL. */
  readonly downloads: DownloadWatch | undefined;
  /** The socket that carries it. */
  readonly socket: Pick<Socket, 'pendingCalls'>;
}

/** Connects to a leased browser until a page is usable. After a failure no socket stays open. */
export async function connectSession<Handles>(
  connector: Connector<Handles>,
  grant: Grant,
  plan: ConnectPlan,
): Promise<OpenConnection<Handles>> {
  const { connectTimeout } = plan.settings;
  const limit = new LinkedAbort(plan.signal, connectTimeout);
  const openCdp = (signal: AbortSignal) => openSocket(grant, { protocol: 'cdp', trust: plan.trust, signal });
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
      `no page became usable within ${duration(connectTimeout)} (option connectTimeout)`,
    );
    throw connectError(connector.library, grant.id, limit.timedOut ? timeout : error);
  } finally {
    pages?.stop();
    limit.dispose();
  }
}

/** What a connection consists of, before the library uses it. */
async function openParts(connector: Connector, grant: Grant, plan: ConnectPlan, signal: AbortSignal) {
  const { settings, trust, spare, additions } = plan;
  const { protocol, connectOptions } = settings;
  const listener = additions.find(({ downloads }) => downloads)?.downloads;
  const socket = await openSocket(grant, { protocol, trust, signal, spare });
  const filter = filterOf(socket, plan.onMisfit);
  const rules = additions.flatMap((one) => one.rules ?? []);
  const watch = new BidiWatch(plan.onOwnContextUsed);
  // Also without a feature that reads it: see its table.
  filter.add(protocol === 'cdp' ? { events: { 'Runtime.bindingCalled': () => {} } } : watch.rules);
  filter.add(...rules);
  // A second WebSocket would be another lease.
  const hasOneSocket = grant.endsWithConnection === true && protocol === 'cdp';
  const openFurther = async (of: Protocol, during: AbortSignal, ofClient: readonly MessageRules[] = []) =>
    hasOneSocket && of === 'cdp'
      ? raceAbort(filter.openSession(), during)
      : openSocket(grant, { protocol: of, trust, signal: during, rules: ofClient });
  const openCdp = (during: AbortSignal) => openFurther('cdp', during);
  const onLost = () => socket.cut('dropped');
  const parts = { openCdp, filter, starts: new PageStarts(), connectOptions, onLost, signal };
  const extensions = await Extensions.create(additions, parts).catch((error: unknown) => {
    socket.cut('closed-by-us');
    throw error;
  });
  const watched = { socket, filter, openCdp, listener };
  const downloads = connector.sharesFiles === false ? undefined : watchDownloads(grant, watched);
  /** Saves the files instead of the library. */
  const saving = listener && !connector.savesDownloads ? downloads : undefined;
  const openClient: OpenClient = async (during, ofClient = protocol) => {
    const isLimited = rules.some(({ isLimit }) => isLimit);
    if (isLimited && ofClient === 'bidi') throw new ConnectError(NO_LIMIT, { sessionId: grant.id });
    const client = await openFurther(ofClient, during, rules);
    // What limits the clients ends with the connection.
    if (isLimited) void socket.ended.then(() => client.cut('closed-by-us'));
    return client;
  };
  return { socket, filter, watch, extensions, downloads, saving, openCdp, openClient };
}

/** Opens the sockets of a connection, and lets the library connect. */
async function connectOnce<Handles>(
  connector: Connector<Handles>,
  grant: Grant,
  plan: ConnectPlan,
  signal: AbortSignal,
): Promise<OpenConnection<Handles>> {
  const parts = await openParts(connector, grant, plan, signal);
  const { socket, filter, extensions, downloads, saving, openClient } = parts;
  const { ended } = socket;
  void ended.then(() => extensions.cut());
  const cut = () => {
    extensions.cut();
    socket.cut('closed-by-us');
  };
  const { hasOnlyBidi, clean, endSession } = endsOf(grant, plan, parts);
  const connecting = async () => {
    saving?.prepare((await createTemporaryFolder(socket)).path);
    const request = requestOf(grant, plan, { socket, openClient });
    const [connection] = await Promise.all([
      connector.connect({
        ...request,
        replacesOwnContext: async () =>
          hasOnlyBidi && !(await hasCdp(filter.cdp)) && plan.replaceOwnContext(),
        useBrowser: (browser) => extensions.useBrowser(connector.library, browser),
      }),
      extensions.open(signal),
    ]);
    await saving?.saveAll(extensions.ownContext);
    return connection;
  };
  try {
    const connection = await raceAbort(raceEnd(connecting(), ended, dropped), signal);
    // No response to a request of the lease may arrive while the browser is cleaned.
    const cleanup = async () => void (await Promise.all([connection.cleanup(), extensions.stop()]));
    const explain = (error: unknown) => {
      connection.explain?.(error);
      for (const one of plan.additions) one.explain?.(error, { isElsewhere: isElsewhere(grant) });
    };
    const disconnect = () => endSession().then(() => connection.disconnect());
    const open = { ...connection, explain, socket, ended, downloads, cut, cleanup, clean };
    return hasOnlyBidi ? { ...open, disconnect } : open;
  } catch (error) {
    cut();
    throw error;
  }
}

/** How a connection leaves its browser for the next one. */
function endsOf(
  { cdpUrl }: Grant,
  { settings }: ConnectPlan,
  { socket, watch, openCdp }: { socket: Socket; watch: BidiWatch; openCdp: OpenCdp },
) {
  const { protocol, connectTimeout } = settings;
  const hasOnlyBidi = protocol === 'bidi' && cdpUrl === undefined;
  const clean = async (how: { isOwnContextUsed: boolean }) => {
    if (protocol === 'cdp') return cleanBrowser(socket.takeOver(), how);
    if (hasOnlyBidi) return cleanOverBidi(socket.takeOver(), { ...how, watch });
    return cleanOverCdp(await openCdp(AbortSignal.timeout(connectTimeout)), socket.ended, how);
  };
  /** A browser without CDP, such as Firefox, has one session at a time, which outlasts its connection. Never rejects. */
  const endSession = async () => {
    if (watch.hasBegunSession) await new CdpClient(socket.takeOver()).send('session.end').catch(() => {});
  };
  return { hasOnlyBidi, clean, endSession };
}

const NO_LIMIT = 'The lease limits its clients, which is not possible over WebDriver BiDi.';

function watchDownloads(grant: Grant, plan: Omit<PlanOfDownloads, 'isElsewhere'>): DownloadWatch | undefined {
  if (grant.cdpUrl === undefined) return undefined;
  return new DownloadWatch({ ...plan, isElsewhere: isElsewhere(grant) });
}

/** The address of a browser on another machine can also be one of this machine, for example that of a tunnel. */
function isElsewhere({ cdpUrl, bidiUrl }: Grant): boolean {
  return [cdpUrl, bidiUrl].some((url) => url !== undefined && !isLoopback(new URL(url).hostname));
}

/** The filter of a connection. */
function filterOf(socket: Socket, onMisfit?: (name: string) => void): MessageFilter {
  const filter = new MessageFilter(socket, onMisfit);
  socket.tap = filter;
  return filter;
}

function requestOf(
  { id }: Grant,
  { settings, pageUrl, onOwnContextUsed }: ConnectPlan,
  { socket, openClient }: { socket: Socket; openClient: OpenClient },
): Omit<ConnectRequest, 'replacesOwnContext'> {
  const { protocol, context, contextOptions, connectOptions, connectTimeout: timeout } = settings;
  const endReason =
    `The lease of session ${id} has ended: its callback returned, or it was released. ` +
    'Await each call, or use leaseBrowser for work that outlives a callback.';
  const endpoint = () => openSingleEndpoint(socket);
  const sharedEndpoint = async () => {
    const shared = await openSharedEndpoint(openClient);
    void socket.detached.then(() => shared[Symbol.asyncDispose]());
    return shared.url;
  };
  const options = { protocol, context, contextOptions, connectOptions, timeout };
  return { socket, ...options, pageUrl, endReason, onOwnContextUsed, endpoint, openClient, sharedEndpoint };
}

/** Not every library detects that its socket has ended. */
function dropped(how: SocketEnd): ConnectError {
  return new ConnectError(`the WebSocket ended during the connect (${how})`);
}

/**
 * Removes what an earlier lease left in a browser that nothing could destroy.
 *
 * @throws ConnectError; the signal's reason.
 */
export async function cleanSession(
  grant: Grant,
  { settings, trust, signal }: Pick<ConnectPlan, 'settings' | 'trust' | 'signal'>,
  how: { isOwnContextUsed: boolean },
): Promise<void> {
  const limit = new LinkedAbort(signal, settings.connectTimeout);
  const { signal: during } = limit;
  const over = new Promise<void>((resolve) => onAbort(during, resolve));
  try {
    const socket = await openSocket(grant, { protocol: 'cdp', trust, signal: during });
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

/** Cleans a browser with a socket of its own, until `over` resolves: afterwards the browser may belong to another lease. */
async function cleanOverCdp(
  socket: CdpSocket,
  over: Promise<unknown>,
  how: { isOwnContextUsed: boolean },
): Promise<void> {
  const cut = () => socket.cut('closed-by-us');
  void over.then(cut);
  try {
    await cleanBrowser(socket.takeOver(), how);
  } finally {
    cut();
  }
}

/** Opens a WebSocket to the session, if its URL may be trusted. */
export async function openSocket(
  grant: Grant,
  how: {
    protocol: Protocol;
    trust: Trust;
    signal: AbortSignal;
    spare?: SpareConnection;
    /** Of the messages of its client. */
    rules?: readonly MessageRules[];
  },
): Promise<Socket> {
  const { protocol, trust, signal, spare, rules = [] } = how;
  const url = await trustedUrl(grant, protocol, trust, signal);
  const headers = headersTo(url, grant, trust);
  const { network, keepAlive: after } = trust;
  const keepAlive = after === undefined ? undefined : { after, protocol };
  const socket = await Socket.open(url, signal, { network, spare, headers, keepAlive });
  if (rules.length > 0) filterOf(socket).add(...rules);
  return socket;
}

/** Longest reason in the message of a `ConnectError`, in characters. */
const LONGEST_REASON = 4000;

function connectError(library: string, sessionId: string, cause: unknown): ConnectError {
  const { status, unreachedBy } = cause instanceof ConnectError ? cause : {};
  const why = cause instanceof Error ? cause.message : 'unknown failure';
  // The browser can have written a part of it.
  const shown = shortened(why, LONGEST_REASON);
  const message = `${library} could not connect to the browser of session ${sessionId}: ${shown}`;
  return new ConnectError(message, { sessionId, status, unreachedBy, cause });
}
