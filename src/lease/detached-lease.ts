import { InvalidOptionError } from '../shared/errors.js';
import { INSPECT, hideSecret } from '../shared/redact.js';
import { isRecord, parseJson } from '../shared/json.js';
import { readSession, revealSession } from '../service/session.js';
import type { BrowserSession } from '../service/wire.js';

const PREFIX = 'pooled-browser-lease-1.';

/** The data with which another process continues a lease, without the access token. */
export interface LeaseRecord {
  /** Id or name of the pool. */
  pool: string;
  /** Address of the service. */
  baseUrl: string;
  session: BrowserSession;
  /** Ids of the session's recordings from before the lease, if they are known. */
  earlierReplays?: readonly string[] | undefined;
}

/** A lease without a connection. The caller of `attachBrowser` must release it. */
export class DetachedLease {
  /** `session_id` of the leased browser. */
  readonly sessionId: string;
  /** Milliseconds from the detachment until the service ends the session, if nothing connects. */
  readonly expiresAfter: number;
  readonly #secret: string;

  constructor({ session, ...record }: LeaseRecord) {
    this.sessionId = session.session_id;
    this.expiresAfter = session.timeout_seconds * 1000;
    const whole = JSON.stringify({ ...record, session: revealSession(session) });
    this.#secret = PREFIX + Buffer.from(whole).toString('base64url');
    hideSecret(this.#secret);
  }

  /**
   * The lease as a string, to save or to send. Everybody with this string can control the browser: treat it as a
   * password.
   */
  get secret(): string {
    return this.#secret;
  }

  /** @internal Declared without `inspect` of node:util, for programs without Node's types. */
  [INSPECT](_depth: number, options: object, inspect: (value: object, options: object) => string): string {
    const { sessionId, expiresAfter } = this;
    return `DetachedLease ${inspect({ sessionId, expiresAfter }, options)}`;
  }
}

/** Reads a detached lease, or its secret. */
export function readDetachedLease(lease: DetachedLease | string): LeaseRecord {
  const secret = lease instanceof DetachedLease ? lease.secret : lease;
  if (typeof secret === 'string' && secret.startsWith(PREFIX)) {
    const { pool, baseUrl, session, earlierReplays } = decode(secret.slice(PREFIX.length));
    const read = readSession(session);
    if (typeof pool === 'string' && typeof baseUrl === 'string' && typeof read !== 'string')
      return { pool, baseUrl, session: read, earlierReplays: idsOf(earlierReplays) };
  }
  throw new InvalidOptionError(
    'lease',
    'The first argument must be the result of detach(), or its complete secret.',
  );
}

function idsOf(ids: unknown): string[] | undefined {
  return Array.isArray(ids) ? ids.map(String) : undefined;
}

function decode(text: string): Record<string, unknown> {
  try {
    const record = parseJson(Buffer.from(text, 'base64url').toString());
    return isRecord(record) ? record : {};
  } catch {
    return {};
  }
}
