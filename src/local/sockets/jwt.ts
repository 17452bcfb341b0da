import { randomBytes } from 'node:crypto';
import { jwtVerify, SignJWT, type JWTPayload } from 'jose';
import type { Lease } from '../pool/lease.js';

/** The use of a lease's URL. A jwt for one use is refused for another. `live-watch` cannot control the browser. */
export type Audience = 'cdp' | 'bidi' | 'live-view' | 'live-watch';

/** The lease that a valid jwt names. */
interface Holder {
  readonly sessionId: string;
  readonly leaseId: string;
  readonly audience: Audience;
}

const ALGORITHM = 'HS256';
const ISSUER = 'pooled-browser-local';
const TWELVE_HOURS = 12 * 60 * 60_000;

/** Long, because a pool can run for weeks with its dashboard open. */
const THIRTY_DAYS = 30 * 24 * 60 * 60_000;

/** Signs and verifies the jwts in URLs. The secret exists only in this object. */
export class LeaseTokens {
  readonly #secret = randomBytes(32);
  readonly #lifetime: number;

  /** @param lifetime Milliseconds until a jwt expires. */
  constructor(lifetime = TWELVE_HOURS) {
    this.#lifetime = lifetime;
  }

  sign(lease: Lease, audience: Audience): Promise<string> {
    return this.#sign(lease.browser.sessionId, audience, { lease: lease.id });
  }

  /** @returns Undefined when the jwt is forged, expired or for another use. */
  async verify(jwt: string, audiences: readonly Audience[]): Promise<Holder | undefined> {
    const { sub, lease, aud } = (await this.#verify(jwt, audiences)) ?? {};
    const audience = audiences.find((one) => one === aud);
    if (sub === undefined || typeof lease !== 'string' || !audience) return undefined;
    return { sessionId: sub, leaseId: lease, audience };
  }

  /** The jwt names no lease, because recordings exist longer than leases. */
  readonly signReplay = (sessionId: string, replayId: string): Promise<string> =>
    this.#sign(sessionId, 'replay', { replay: replayId });

  /** @returns Undefined when the jwt is forged, expired or for another use. */
  async verifyReplay(jwt: string): Promise<{ sessionId: string; replayId: string } | undefined> {
    const { sub, replay } = (await this.#verify(jwt, ['replay'])) ?? {};
    return sub !== undefined && typeof replay === 'string' ? { sessionId: sub, replayId: replay } : undefined;
  }

  signDashboard(): Promise<string> {
    return this.#sign('dashboard', 'dashboard', {}, THIRTY_DAYS);
  }

  async verifyDashboard(jwt: string): Promise<boolean> {
    return (await this.#verify(jwt, ['dashboard'])) !== undefined;
  }

  #sign(subject: string, audience: string, claims: JWTPayload, lifetime = this.#lifetime): Promise<string> {
    return new SignJWT(claims)
      .setProtectedHeader({ alg: ALGORITHM })
      .setIssuer(ISSUER)
      .setAudience(audience)
      .setSubject(subject)
      .setExpirationTime(new Date(monotonicNow() + lifetime))
      .sign(this.#secret);
  }

  async #verify(jwt: string, audience: readonly string[]): Promise<JWTPayload | undefined> {
    try {
      const { payload } = await jwtVerify(jwt, this.#secret, {
        // A jwt must not choose its own algorithm, such as "none".
        algorithms: [ALGORITHM],
        issuer: ISSUER,
        audience: [...audience],
        requiredClaims: ['sub', 'exp'],
        currentDate: new Date(monotonicNow()),
      });
      return payload;
    } catch {
      return undefined;
    }
  }
}

/** The time in ms by a monotonic clock: a change of the wall clock must not end every lease. */
function monotonicNow(): number {
  return performance.timeOrigin + performance.now();
}
