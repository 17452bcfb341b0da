import { isRecord, mapStrings } from '../shared/json.js';
import { hideSecret, hideValuesIn, INSPECT, redact } from '../shared/redact.js';
import type { Grant } from '../services/browser-service.js';

/** Hides the secrets of a browser and of its session from `util.inspect`, and those of the session also from JSON. */
export function sealGrant<Session extends object>(grant: Grant<Session>): Grant<Session> {
  const { session: _session, ...urls } = grant;
  const session = sealSession(grant);
  const shown = { ...(mapStrings(urls, redact) as object), session };
  return Object.defineProperty({ ...grant, session }, INSPECT, { value: () => shown });
}

/**
 * Hides the secrets of a session. Fields that contain one return their real value when code reads them by name;
 * `util.inspect`, JSON and enumeration show them redacted or not at all.
 */
export function sealSession<Session extends object>({
  session: fields,
  secretFields = [],
  headers = {},
  ...urls
}: Grant<Session>): Session {
  Object.values(headers).forEach(hideSecret);
  for (const field of secretFields) {
    const value = isRecord(fields) ? fields[field] : undefined;
    if (typeof value === 'string') hideSecret(value);
  }
  // Without the names of this library: one of them can be the name of a secret field of a service.
  hideValuesIn(JSON.stringify([fields, Object.values(urls)]));
  // It has the same fields: some are only hidden.
  const session = {} as Session;
  const shown: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(fields)) {
    const clean = mapStrings(value, redact);
    shown[field] = clean;
    // A field of this name is visible in JSON and `inspect` only.
    if (field === 'toJSON') continue;
    const isSecret = JSON.stringify(clean) !== JSON.stringify(value);
    const descriptor = isSecret ? { get: () => value as unknown } : { value: value as unknown };
    Object.defineProperty(session, field, { ...descriptor, enumerable: !isSecret });
  }
  Object.defineProperty(session, 'toJSON', { value: () => shown });
  Object.defineProperty(session, INSPECT, { value: () => shown });
  return session;
}

/** Returns the session with all its secrets, as the service sent it. */
export function revealSession(session: object): Record<string, unknown> {
  const fields = Object.getOwnPropertyNames(session).filter((field) => field !== 'toJSON');
  return Object.fromEntries(fields.map((field) => [field, (session as Record<string, unknown>)[field]]));
}
