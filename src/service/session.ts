import { INSPECT, hideSecret, redact } from '../shared/redact.js';
import { isRecord } from '../shared/json.js';
import { readFields } from './session-fields.js';
import type { BrowserSession } from './wire.js';

/**
 * The session as handed out. Fields that carry a secret give their real value when asked for by name;
 * `inspect`, JSON and enumeration show everything else, and those fields redacted or not at all.
 */
export function sealSession(json: Record<string, unknown>): BrowserSession {
  const fields = readFields(json);
  Object.values(fields).forEach(rememberJwt);
  const session = {};
  const shown: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(fields)) {
    const clean = redactDeep(value);
    shown[field] = clean;
    // Its place is taken; JSON and inspect show it.
    if (field === 'toJSON') continue;
    const secret = JSON.stringify(clean) !== JSON.stringify(value);
    const descriptor = secret ? { get: () => value } : { value };
    Object.defineProperty(session, field, { ...descriptor, enumerable: !secret });
  }
  Object.defineProperty(session, 'toJSON', { value: () => shown });
  Object.defineProperty(session, INSPECT, { value: () => shown });
  return session as BrowserSession;
}

/** The session with all its secrets, as it came from the service. */
export function revealSession(session: BrowserSession): Record<string, unknown> {
  const fields = Object.getOwnPropertyNames(session).filter((field) => field !== 'toJSON');
  return Object.fromEntries(fields.map((field) => [field, session[field]]));
}

function rememberJwt(value: unknown): void {
  if (typeof value !== 'string' || !value.includes('jwt') || !URL.canParse(value)) return;
  const jwt = new URL(value).searchParams.get('jwt');
  if (jwt) hideSecret(jwt);
}

function redactDeep(value: unknown): unknown {
  if (typeof value === 'string') return redact(value);
  if (Array.isArray(value)) return value.map(redactDeep);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, redactDeep(inner)]));
}
