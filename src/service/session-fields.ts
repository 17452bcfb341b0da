import { isRecord } from '../shared/json.js';
import { pathSegmentFault } from './checks.js';
import { requiredFault, withoutFaulty, type FieldType } from './fields.js';

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

/** The fields of a session that has no fault, as their types promise them. */
export function readFields(json: Record<string, unknown>): Record<string, unknown> {
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
