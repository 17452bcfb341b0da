import { isRecord } from '../shared/json.js';

/** What a field of a resource must be. */
export type FieldType = 'string' | 'boolean' | 'number' | 'object';

/** Names the first required field that is missing or of another type. */
export function requiredFault(
  json: Record<string, unknown>,
  required: Record<string, FieldType>,
): string | undefined {
  for (const [field, type] of Object.entries(required)) {
    if (json[field] === undefined || json[field] === null) return `lacks the required field ${field}`;
    if (!isOfType(json[field], type)) return `has a field ${field} that is no ${type}`;
  }
  return undefined;
}

/**
 * The resource without optional fields that are `null` or of another type than declared,
 * so that the declared types hold and a slip in a minor field costs no lease.
 */
export function withoutFaulty(
  json: Record<string, unknown>,
  optional: Record<string, FieldType>,
): Record<string, unknown> {
  const kept = Object.entries(json).filter(
    ([field, value]) => !Object.hasOwn(optional, field) || isOfType(value, optional[field]!),
  );
  return Object.fromEntries(kept);
}

function isOfType(value: unknown, type: FieldType): boolean {
  return type === 'object' ? isRecord(value) : typeof value === type;
}
