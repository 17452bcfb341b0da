import { inspect } from 'node:util';
import { isRecord } from '../internal/is-record.js';
import { hideSecret, redact } from '../internal/redact.js';
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
};

/** What keeps this JSON from being a session (interface: Browser session), if anything. */
export function sessionFault(json: unknown): string | undefined {
  return isRecord(json) ? requiredFault(json, REQUIRED) : 'is no JSON object';
}

/**
 * The session as handed out. Fields that carry a secret give their real value when asked for by name;
 * `inspect`, JSON and enumeration show everything else, and those fields redacted or not at all.
 */
export function sealSession(json: Record<string, unknown>): BrowserSession {
  const fields = withoutFaulty(json, OPTIONAL);
  const session = {};
  for (const [field, value] of Object.entries(fields)) {
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
  return /"session_id"\s*:\s*"([^"\\]+)"/.exec(body)?.[1];
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
