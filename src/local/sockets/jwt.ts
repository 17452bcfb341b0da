import { randomBytes } from 'node:crypto';
import { jwtVerify, SignJWT } from 'jose';
import type { Lease } from '../pool/lease.js';

/** What a websocket URL is for. One for CDP opens no BiDi socket, and the other way round. */
export type Audience = 'cdp' | 'bidi';

/** Whom a valid jwt names. */
export interface Holder {
  readonly sessionId: string;
  readonly lease: number;
}

const ALGORITHM = 'HS256';
const ISSUER = 'pooled-browser-local';
const TWELVE_HOURS = 12 * 60 * 60_000;

/** Signs and checks the jwts of websocket URLs, with a secret that lives as long as this object. */
export class LeaseTokens {
  readonly #secret = randomBytes(32);
  readonly #lifetime: number;

  /** @param lifetime Milliseconds that a jwt is good for. */
  constructor(lifetime = TWELVE_HOURS) {
    this.#lifetime = lifetime;
  }

  sign(lease: Lease, audience: Audience): Promise<string> {
    return new SignJWT({ lease: lease.number })
      .setProtectedHeader({ alg: ALGORITHM })
      .setIssuer(ISSUER)
      .setAudience(audience)
      .setSubject(lease.browser.sessionId)
      .setExpirationTime(new Date(steadyNow() + this.#lifetime))
      .sign(this.#secret);
  }

  /** Whom the jwt names; nothing when it is forged, expired or meant for something else. */
  async verify(jwt: string, audience: Audience): Promise<Holder | undefined> {
    try {
      const { payload } = await jwtVerify(jwt, this.#secret, {
        // Pinned: a jwt must not choose its own algorithm, "none" least of all.
        algorithms: [ALGORITHM],
        issuer: ISSUER,
        audience,
        requiredClaims: ['sub', 'exp'],
        currentDate: new Date(steadyNow()),
      });
      const { sub, lease } = payload;
      return sub !== undefined && typeof lease === 'number' ? { sessionId: sub, lease } : undefined;
    } catch {
      return undefined;
    }
  }
}

/** The time by a clock that does not jump: a corrected wall clock must not end every lease. */
function steadyNow(): number {
  return performance.timeOrigin + performance.now();
}
