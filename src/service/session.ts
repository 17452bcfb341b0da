import { isRecord, mapStrings, parseJson } from '../shared/json.js';
import { hideSecret, INSPECT, redact } from '../shared/redact.js';
import { pathSegmentFault } from './pool-options.js';
import { readWire, sessionSchema, type BrowserSession } from './wire.js';

/** Reads a session, or returns the reason why the JSON is not a session. */
export function readSession(json: unknown): BrowserSession | string {
  const read = readWire(sessionSchema, json);
  if (typeof read === 'string') return read;
  // The library could not release a browser with such an id.
  const fault = pathSegmentFault(read.value['session_id']);
  return fault === undefined ? sealSession(read.value) : `has a session_id that ${fault}`;
}

/**
 * Hides the secrets of a session. Fields that contain one return their real value when code reads them by name;
 * `util.inspect`, JSON and enumeration show them redacted or not at all.
 */
function sealSession(fields: Record<string, unknown>): BrowserSession {
  Object.values(fields).forEach(rememberJwt);
  const session = {};
  const shown: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(fields)) {
    const clean = mapStrings(value, redact);
    shown[field] = clean;
    // A field of this name is visible in JSON and `inspect` only.
    if (field === 'toJSON') continue;
    const isSecret = JSON.stringify(clean) !== JSON.stringify(value);
    const descriptor = isSecret ? { get: () => value } : { value };
    Object.defineProperty(session, field, { ...descriptor, enumerable: !isSecret });
  }
  Object.defineProperty(session, 'toJSON', { value: () => shown });
  Object.defineProperty(session, INSPECT, { value: () => shown });
  return session as BrowserSession;
}

/** Returns the session with all its secrets, as the service sent it. */
export function revealSession(session: BrowserSession): Record<string, unknown> {
  const fields = Object.getOwnPropertyNames(session).filter((field) => field !== 'toJSON');
  return Object.fromEntries(fields.map((field) => [field, session[field]]));
}

/** Finds the session id in a body that is not a valid session: that browser is leased and must be released. */
export function findSessionId(body: string): string | undefined {
  const id = idInJson(body) ?? idInText(body);
  return pathSegmentFault(id) === undefined ? (id as string) : undefined;
}

function idInJson(body: string): unknown {
  try {
    const json = parseJson(body);
    return isRecord(json) ? json['session_id'] : undefined;
  } catch {
    return undefined;
  }
}

function idInText(body: string): unknown {
  const text = /"session_id"\s*:\s*("(?:[^"\\]|\\.)+")/.exec(body)?.[1];
  try {
    return text && JSON.parse(text);
  } catch {
    return undefined;
  }
}

function rememberJwt(value: unknown): void {
  if (typeof value !== 'string' || !value.includes('jwt') || !URL.canParse(value)) return;
  const jwt = new URL(value).searchParams.get('jwt');
  if (jwt) hideSecret(jwt);
}
