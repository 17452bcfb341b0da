import { randomBytes } from 'node:crypto';
import { jwtVerify, SignJWT, type JWTPayload } from 'jose';
import type { Lease } from '../pool/lease.js';

/**
 * What a URL of a lease is for. One for CDP opens no BiDi socket, and the other way round; whoever has one for
 * `live-watch` sees the browser, and can't do anything in it.
 */
export type Audience = 'cdp' | 'bidi' | 'live-view' | 'live-watch';

/** Whom a valid jwt names. */
export interface Holder {
  readonly sessionId: string;
  readonly lease: number;
  /** The one of those asked about that it is for. */
  readonly audience: Audience;
}

/** Which recording a valid jwt shows. */
export interface ReplayHolder {
  readonly sessionId: string;
  readonly replayId: string;
}

const ALGORITHM = 'HS256';
const ISSUER = 'pooled-browser-local';
const TWELVE_HOURS = 12 * 60 * 60_000;

/** Whoever serves pools for weeks keeps the page open for weeks. The secret does not outlive the process. */
const THIRTY_DAYS = 30 * 24 * 60 * 60_000;

/** Signs and checks the jwts of URLs, with a secret that lives as long as this object. */
export class LeaseTokens {
  readonly #secret = randomBytes(32);
  readonly #lifetime: number;

  /** @param lifetime Milliseconds that a jwt is good for. */
  constructor(lifetime = TWELVE_HOURS) {
    this.#lifetime = lifetime;
  }

  sign(lease: Lease, audience: Audience): Promise<string> {
    return this.#sign(lease.browser.sessionId, audience, { lease: lease.number });
  }

  /** Whom the jwt names; nothing when it is forged, expired or meant for something else. */
  async verify(jwt: string, audiences: readonly Audience[]): Promise<Holder | undefined> {
    const { sub, lease, aud } = (await this.#verify(jwt, audiences)) ?? {};
    const audience = audiences.find((one) => one === aud);
    if (sub === undefined || typeof lease !== 'number' || !audience) return undefined;
    return { sessionId: sub, lease, audience };
  }

  /** For one recording. It is bound to no lease: recordings outlive theirs. */
  readonly signReplay = (sessionId: string, replayId: string): Promise<string> =>
    this.#sign(sessionId, 'replay', { replay: replayId });

  /** Which recording the jwt shows; nothing when it is forged, expired or meant for something else. */
  async verifyReplay(jwt: string): Promise<ReplayHolder | undefined> {
    const { sub, replay } = (await this.#verify(jwt, ['replay'])) ?? {};
    return sub !== undefined && typeof replay === 'string' ? { sessionId: sub, replayId: replay } : undefined;
  }

  /** For the dashboard, which shows every pool of the server. */
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
      .setExpirationTime(new Date(steadyNow() + lifetime))
      .sign(this.#secret);
  }

  async #verify(jwt: string, audience: readonly string[]): Promise<JWTPayload | undefined> {
    try {
      const { payload } = await jwtVerify(jwt, this.#secret, {
        // Pinned: a jwt must not choose its own algorithm, "none" least of all.
        algorithms: [ALGORITHM],
        issuer: ISSUER,
        audience: [...audience],
        requiredClaims: ['sub', 'exp'],
        currentDate: new Date(steadyNow()),
      });
      return payload;
    } catch {
      return undefined;
    }
  }
}

/** The time by a clock that does not jump: a corrected wall clock must not end every lease. */
function steadyNow(): number {
  return performance.timeOrigin + performance.now();
}
