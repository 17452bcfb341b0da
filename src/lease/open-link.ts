import { connectSession, type OpenConnection } from '../connect/connect-session.js';
import type { Connector } from '../connect/connector.js';
import { BrowserLostError, type LossReason } from '../shared/lease-errors.js';
import type { LinkedAbort } from '../shared/abort.js';
import type { BrowserPool } from '../service/browser-pool.js';
import type { BrowserSession } from '../service/wire.js';
import { Link } from './link.js';
import type { Recorder } from './recorder.js';
import type { Settings } from './settings.js';

export interface LinkParts<Handles> {
  pool: BrowserPool;
  connector: Connector<Handles>;
  settings: Settings;
  recorder: Recorder;
  /** Aborts, with what became of it, when the browser is lost. */
  abort: LinkedAbort;
  /** Somebody was connected during this lease before. Default: `false`. */
  isTakenUp?: boolean;
}

/** Connects to a leased browser, up to a usable page. */
export async function openLink<Handles>(
  session: BrowserSession,
  { pool, connector, settings, recorder, abort, isTakenUp = false }: LinkParts<Handles>,
): Promise<Link<Handles>> {
  const facts = { pool: pool.idOrName, sessionId: session.session_id };
  const open = connectorOf(session, { pool, connector, settings, recorder });
  const connect: typeof open = (...where) => recorder.time('connect', () => open(...where));
  const connection = await connect(undefined, abort.signal);
  return new Link(connection, {
    connect,
    isFirst: !isTakenUp,
    reconnect: settings.reconnect,
    keepAlive: settings.keepAlive,
    inactivityTimeout: session.timeout_seconds * 1000,
    signal: abort.signal,
    tell: recorder.tell,
    onLost: (reason, cause) => {
      const error = new BrowserLostError(explainLoss(reason), reason, { ...facts, cause });
      recorder.tell({ type: 'browser-lost', sessionId: facts.sessionId, error });
      abort.abort(error);
    },
    facts,
  });
}

function connectorOf<Handles>(
  session: BrowserSession,
  {
    pool,
    connector,
    settings,
    recorder,
  }: Pick<LinkParts<Handles>, 'pool' | 'connector' | 'settings' | 'recorder'>,
): (pageUrl: string | undefined, signal: AbortSignal) => Promise<OpenConnection<Handles>> {
  const { protocol, context, driver, connectTimeout } = settings;
  const { session_id: sessionId } = session;
  const { library } = connector;
  const { baseUrl } = pool;
  const onFrozenPages = (urls: string[]) => recorder.tell({ type: 'frozen-pages-closed', sessionId, urls });
  return async (pageUrl, signal) => {
    recorder.tell({ type: 'connecting', sessionId, library, protocol });
    const plan = { protocol, context, driver, connectTimeout, pageUrl, baseUrl, signal, onFrozenPages };
    try {
      const connection = await connectSession(connector, session, plan);
      recorder.tell({ type: 'connected', sessionId });
      return connection;
    } catch (error) {
      recorder.tell({ type: 'connect-failed', sessionId, error: error as Error });
      throw error;
    }
  };
}

function explainLoss(reason: LossReason): string {
  const how = {
    dropped: 'its connection broke or fell silent',
    'closed-by-service': 'the other side closed the connection: the browser ended, or was taken away',
    expired: 'its session expired',
    'closed-by-callback': 'the callback closed the browser or its connection, which is ours to close',
  };
  return `The browser was lost: ${how[reason]}.`;
}
