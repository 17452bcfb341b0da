import { inspect } from 'node:util';
import { isRecord } from '../internal/is-record.js';
import { parseJson } from '../internal/json.js';
import { hideSecret, redact } from '../internal/redact.js';
import { pathSegmentFault } from './checks.js';
import { requiredFault, withoutFaulty, type FieldType } from './fields.js';
import type { BrowserSession } from './wire.js';

const REQUIRED: Record<string, FieldType> = {
  session_id: 'string',
  created_at: 'string',
  cdp_ws_url: 'string',
  webdriver_ws_url: 'string',
  headless: 'boolean',
  stealth: 'boolean',
  timeout_seconds: 'number',
};

const OPTIONAL: Record<string, FieldType> = {
  browser_live_view_url: 'string',
  base_url: 'string',
  gpu: 'boolean',
  name: 'string',
  profile: 'object',
  proxy_id: 'string',
  pool: 'object',
  viewport: 'object',
  kiosk_mode: 'boolean',
  start_url: 'string',
  chrome_policy: 'object',
  tags: 'object',
  deleted_at: 'string',
  usage: 'object',
  telemetry: 'object',
};

const SIZE: Record<string, FieldType> = { width: 'number', height: 'number' };

const INSIDE: Record<string, Record<string, FieldType>> = {
  profile: {
    id: 'string',
    name: 'string',
    created_at: 'string',
    updated_at: 'string',
    last_used_at: 'string',
  },
  pool: { id: 'string', name: 'string' },
  usage: { uptime_ms: 'number' },
  viewport: { refresh_rate: 'number' },
};

/** What keeps this JSON from being a session (interface: Browser session), if anything. */
export function sessionFault(json: unknown): string | undefined {
  if (!isRecord(json)) return 'is no JSON object';
  const fault = requiredFault(json, REQUIRED);
  if (fault) return fault;
  // Such an id could never be given back.
  const idFault = pathSegmentFault(json['session_id']);
  return idFault && `has a session_id that ${idFault}`;
}

/**
 * The session as handed out. Fields that carry a secret give their real value when asked for by name;
 * `inspect`, JSON and enumeration show everything else, and those fields redacted or not at all.
 */
export function sealSession(json: Record<string, unknown>): BrowserSession {
  const fields = readFields(json);
  const session = {};
  for (const [field, value] of Object.entries(fields)) {
    // Its place is taken; JSON and inspect show it.
    if (field === 'toJSON') continue;
    const secret = hasSecret(value);
    if (secret) rememberJwt(value);
    const descriptor = secret ? { get: () => value } : { value };
    Object.defineProperty(session, field, { ...descriptor, enumerable: !secret });
  }
  const shown = redactDeep(fields);
  Object.defineProperty(session, 'toJSON', { value: () => shown });
  Object.defineProperty(session, inspect.custom, { value: () => shown });
  return session as BrowserSession;
}

/** The session id in a body that is no valid session: whoever can read it owes a release. */
export function readableSessionId(body: string): string | undefined {
  const id = idOfJson(body) ?? idOfText(body);
  return pathSegmentFault(id) ? undefined : (id as string);
}

function idOfJson(body: string): unknown {
  try {
    const json = parseJson(body);
    return isRecord(json) ? json['session_id'] : undefined;
  } catch {
    return undefined;
  }
}

function idOfText(body: string): unknown {
  const text = /"session_id"\s*:\s*("(?:[^"\\]|\\.)+")/.exec(body)?.[1];
  try {
    return text && JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readFields(json: Record<string, unknown>): Record<string, unknown> {
  const fields = withoutFaulty(json, OPTIONAL);
  for (const [field, optional] of Object.entries(INSIDE)) {
    if (isRecord(fields[field])) fields[field] = withoutFaulty(fields[field], optional);
  }
  if (isRecord(fields['tags'])) {
    const tags = Object.entries(fields['tags']).filter(([, value]) => typeof value === 'string');
    fields['tags'] = Object.fromEntries(tags);
  }
  if (isRecord(fields['viewport']) && requiredFault(fields['viewport'], SIZE)) delete fields['viewport'];
  if (json['telemetry'] === null) fields['telemetry'] = null;
  return fields;
}

function hasSecret(value: unknown): boolean {
  return JSON.stringify(value) !== JSON.stringify(redactDeep(value));
}

function rememberJwt(value: unknown): void {
  if (typeof value !== 'string' || !URL.canParse(value)) return;
  const jwt = new URL(value).searchParams.get('jwt');
  if (jwt) hideSecret(jwt);
}

function redactDeep(value: unknown): unknown {
  if (typeof value === 'string') return redact(value);
  if (Array.isArray(value)) return value.map(redactDeep);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, redactDeep(inner)]));
}
