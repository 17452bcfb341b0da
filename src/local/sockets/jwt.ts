import { randomBytes } from 'node:crypto';
import { jwtVerify, SignJWT } from 'jose';
import type { ServedLease } from '../pool/served-lease.js';

/** The protocol of a WebSocket URL. A jwt for one protocol is refused for the other. */
export type Audience = 'cdp' | 'bidi';

/** The last part of the path of a protocol's WebSocket. */
export const PATHS: Readonly<Record<Audience, string>> = { cdp: 'cdp', bidi: 'session' };

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

  sign({ id }: ServedLease, audience: Audience): Promise<string> {
    return new SignJWT()
      .setProtectedHeader({ alg: ALGORITHM })
      .setIssuer(ISSUER)
      .setAudience(audience)
      .setSubject(id)
      .setExpirationTime(new Date(monotonicNow() + this.#lifetime))
      .sign(this.#secret);
  }

  /** @returns False when the jwt is forged, expired, of another lease or for the other protocol. */
  async isValid(jwt: string, { id }: ServedLease, audience: Audience): Promise<boolean> {
    try {
      await jwtVerify(jwt, this.#secret, {
        // A jwt must not choose its own algorithm, such as "none".
        algorithms: [ALGORITHM],
        issuer: ISSUER,
        audience,
        subject: id,
        requiredClaims: ['exp'],
        currentDate: new Date(monotonicNow()),
      });
      return true;
    } catch {
      return false;
    }
  }
}

/** The time in ms by a monotonic clock: a change of the wall clock must not end every lease. */
function monotonicNow(): number {
  return performance.timeOrigin + performance.now();
}

export async function websocketUrl(
  { host, tokens }: { readonly host: string; readonly tokens: LeaseTokens },
  lease: ServedLease,
  audience: Audience,
): Promise<string> {
  const jwt = await tokens.sign(lease, audience);
  return `ws://${host}/browsers/${lease.sessionId}/${PATHS[audience]}?jwt=${jwt}`;
}
