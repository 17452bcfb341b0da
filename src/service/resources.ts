import { isRecord } from '../shared/json.js';
import { withoutFaulty, type FieldType } from './fields.js';
import type { PoolRecord, Replay } from './wire.js';

const REPLAY: Record<string, FieldType> = {
  replay_id: 'string',
  started_at: 'string',
  finished_at: 'string',
  replay_view_url: 'string',
};

const POOL: Record<string, FieldType> = {
  name: 'string',
  available_count: 'number',
  acquired_count: 'number',
  created_at: 'string',
  browser_pool_config: 'object',
};

/** The replay (interface: Replay), or `undefined` when it is no object. */
export function readReplay(json: unknown): Replay | undefined {
  return isRecord(json) ? withoutFaulty(json, REPLAY) : undefined;
}

/** The replays in a list (interface: Replay), or `undefined` when it is no list of objects. */
export function readReplays(json: unknown): Replay[] | undefined {
  if (!Array.isArray(json) || !json.every(isRecord)) return undefined;
  return json.map((replay) => withoutFaulty(replay, REPLAY));
}

/** The pool record, or `undefined` when it is none. */
export function readPoolRecord(json: unknown): PoolRecord | undefined {
  if (!isRecord(json) || typeof json['id'] !== 'string') return undefined;
  return withoutFaulty(json, POOL) as PoolRecord;
}
