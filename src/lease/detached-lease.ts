import { InvalidOptionError } from '../shared/errors.js';
import { INSPECT, hideSecret } from '../shared/redact.js';
import { isRecord, parseJson } from '../shared/json.js';
import { revealSession, sealSession } from '../service/session.js';
import { sessionFault } from '../service/session-fields.js';
import type { BrowserSession } from '../service/wire.js';

const PREFIX = 'pooled-browser-lease-1.';

/** What it takes to take up a lease in another process. The access token is no part of it. */
export interface LeaseRecord {
  /** Id or name of the pool. */
  pool: string;
  /** Address of the service. */
  baseUrl: string;
  session: BrowserSession;
  /** Which recordings of the session are of leases before, where that is known. */
  earlierReplays?: readonly string[] | undefined;
}

/** A lease that nobody is connected to, and whose release is owed by whoever takes it up with `attachBrowser`. */
export class DetachedLease {
  readonly sessionId: string;
  /** Milliseconds, counted from the detachment, after which the service ends the session, unless somebody connects. */
  readonly expiresAfter: number;
  readonly #secret: string;

  constructor({ session, ...record }: LeaseRecord) {
    this.sessionId = session.session_id;
    this.expiresAfter = session.timeout_seconds * 1000;
    const whole = JSON.stringify({ ...record, session: revealSession(session) });
    this.#secret = PREFIX + Buffer.from(whole).toString('base64url');
    hideSecret(this.#secret);
  }

  /** The whole lease as a string, to be saved or sent. Whoever has it can drive the browser: keep it as a password. */
  get secret(): string {
    return this.#secret;
  }

  /** @internal The types of a program without those of node do not know `inspect`. */
  [INSPECT](_depth: number, options: object, inspect: (value: object, options: object) => string): string {
    const { sessionId, expiresAfter } = this;
    return `DetachedLease ${inspect({ sessionId, expiresAfter }, options)}`;
  }
}

/** What a detached lease, or the secret of one, holds. */
export function readDetachedLease(lease: DetachedLease | string): LeaseRecord {
  const secret = lease instanceof DetachedLease ? lease.secret : lease;
  if (typeof secret === 'string' && secret.startsWith(PREFIX)) {
    const { pool, baseUrl, session, earlierReplays } = decode(secret.slice(PREFIX.length));
    const isService = typeof pool === 'string' && typeof baseUrl === 'string';
    if (isService && isRecord(session) && !sessionFault(session))
      return { pool, baseUrl, session: sealSession(session), earlierReplays: idsOf(earlierReplays) };
  }
  throw new InvalidOptionError(
    'lease',
    'The first argument must be what detach() returned, or the secret of it, whole and unchanged.',
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
