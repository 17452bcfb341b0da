import type { Grant, LeaseRequest } from '../services/browser-service.js';
import type { DetachedState } from '../lease/plan.js';
import { revealSession, sealGrant } from '../pool/session.js';
import { InvalidOptionError } from '../shared/errors.js';
import { isRecord, recordOf } from '../shared/json.js';
import { hideSecret, INSPECT } from '../shared/redact.js';
import { pathSegmentFault } from '../shared/urls.js';

const PREFIX = 'pooled-browser-lease-3.';

/** @internal The data with which another process continues a lease, without the access token. */
interface LeaseRecord<Session extends object = object> extends DetachedState<Session> {
  /** Id or name of the pool. */
  readonly pool: string;
  readonly baseUrl: string;
}

/** A lease without a connection. The caller of `attachBrowser` must release it. */
export class DetachedLease {
  /** Id of the leased session. */
  readonly sessionId: string;
  /** Milliseconds from the detachment until the service ends the session, if nothing connects; `Infinity` if it does not. */
  readonly expiresAfter: number;
  readonly #secret: string;

  /** @internal */
  constructor(lease: LeaseRecord) {
    const { grant, ...record } = lease;
    this.sessionId = grant.id;
    this.expiresAfter = grant.idleTimeout ?? Number.POSITIVE_INFINITY;
    const whole = JSON.stringify({
      ...record,
      grant: { ...grant, ...grant.reconnect, session: revealSession(grant.session) },
    });
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

/** @internal Reads a detached lease, or its secret. The caller names the type of the session. */
export function readDetachedLease<Session extends object>(
  lease: DetachedLease | string,
): LeaseRecord<Session> {
  const secret = lease instanceof DetachedLease ? lease.secret : lease;
  if (typeof secret === 'string' && secret.startsWith(PREFIX)) {
    const text = Buffer.from(secret.slice(PREFIX.length), 'base64url').toString();
    const { pool, baseUrl, grant, lease: request, isMarkShown, left, features } = recordOf(text);
    if (
      typeof pool === 'string' &&
      typeof baseUrl === 'string' &&
      isGrant<Session>(grant) &&
      isRecord(request)
    ) {
      return {
        pool,
        baseUrl,
        grant: sealGrant(grant),
        lease: request as unknown as LeaseRequest,
        isMarkShown: isMarkShown === true,
        left: readLeftovers(left),
        features: isRecord(features) ? features : {},
      };
    }
  }
  throw new InvalidOptionError(
    'lease',
    'The first argument must be the result of detach(), or its complete secret.',
  );
}

function readLeftovers(value: unknown): DetachedState['left'] {
  const { hasHttpLogin, hasChangedWindow, mayBeReused, permanent, extensions, contexts } = isRecord(value)
    ? value
    : {};
  const texts = (list: unknown) =>
    Array.isArray(list) ? list.filter((one): one is string => typeof one === 'string') : [];
  return {
    hasHttpLogin: hasHttpLogin === true,
    hasChangedWindow: hasChangedWindow === true,
    mayBeReused: mayBeReused !== false,
    permanent: texts(permanent),
    extensions: texts(extensions),
    contexts: texts(contexts),
  };
}

function isGrant<Session extends object>(value: unknown): value is Grant<Session> {
  return isRecord(value) && pathSegmentFault(value['id']) === undefined && isRecord(value['session']);
}
