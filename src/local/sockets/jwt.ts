import { randomBytes } from 'node:crypto';
import { jwtVerify, SignJWT } from 'jose';
import type { Lease } from '../pool/lease.js';

/** The protocol of a WebSocket URL. A jwt for one protocol is refused for the other. */
export type Audience = 'cdp' | 'bidi';

/** The lease that a valid jwt names. */
interface Holder {
  readonly sessionId: string;
  readonly leaseId: string;
}

const ALGORITHM = 'HS256';
const ISSUER = 'pooled-browser-local';
const TWELVE_HOURS = 12 * 60 * 60_000;

/** Signs and verifies the jwts in WebSocket URLs. The secret exists only in this object. */
export class LeaseTokens {
  readonly #secret = randomBytes(32);
  readonly #lifetime: number;

  /** @param lifetime Milliseconds until a jwt expires. */
  constructor(lifetime = TWELVE_HOURS) {
    this.#lifetime = lifetime;
  }

  sign(lease: Lease, audience: Audience): Promise<string> {
    return new SignJWT({ lease: lease.id })
      .setProtectedHeader({ alg: ALGORITHM })
      .setIssuer(ISSUER)
      .setAudience(audience)
      .setSubject(lease.browser.sessionId)
      .setExpirationTime(new Date(monotonicNow() + this.#lifetime))
      .sign(this.#secret);
  }

  /** @returns Undefined when the jwt is forged, expired or for the other protocol. */
  async verify(jwt: string, audience: Audience): Promise<Holder | undefined> {
    try {
      const { payload } = await jwtVerify(jwt, this.#secret, {
        // A jwt must not choose its own algorithm, such as "none".
        algorithms: [ALGORITHM],
        issuer: ISSUER,
        audience,
        requiredClaims: ['sub', 'exp'],
        currentDate: new Date(monotonicNow()),
      });
      const { sub: sessionId = '', lease } = payload;
      return typeof lease === 'string' ? { sessionId, leaseId: lease } : undefined;
    } catch {
      return undefined;
    }
  }
}

/** The time in ms by a monotonic clock: a change of the wall clock must not end every lease. */
function monotonicNow(): number {
  return performance.timeOrigin + performance.now();
}
