import { isRecord } from '../../shared/json.js';
import type { AcquireRequest } from '../../service/wire.js';
import { badRequest } from '../http/http-fault.js';
import { NAME_PATTERN } from '../identifiers.js';

const MOST_TAGS = 50;

/** What is wrong with each field (interface: acquire, Request body). Fields that are not listed are let through. */
const FIELDS: { readonly [field in keyof AcquireRequest]-?: (value: unknown) => string | undefined } = {
  acquire_timeout_seconds: (value) =>
    Number.isInteger(value) && (value as number) >= 0 ? undefined : 'must be an integer of 0 or more',
  name: (value) =>
    typeof value === 'string' && NAME_PATTERN.test(value)
      ? undefined
      : 'must be 1 to 255 of letters, digits, ".", "_", "-"',
  tags: wrongInTags,
  start_url: (value) =>
    typeof value === 'string' && URL.canParse(value) ? undefined : 'must be a whole URL',
};

/** Checks an acquire body; a 400 lists every field that is wrong. */
export function readAcquireRequest(body: Record<string, unknown>): AcquireRequest {
  const fields = Object.entries(FIELDS).filter(([field]) => body[field] !== undefined);
  const wrong = fields.flatMap(([field, check]) => {
    const what = check(body[field]);
    return what === undefined ? [] : [`${field}: ${what}`];
  });
  if (wrong.length > 0) throw badRequest('The request is not valid.', wrong);
  return Object.fromEntries(fields.map(([field]) => [field, body[field]]));
}

function wrongInTags(tags: unknown): string | undefined {
  if (!isRecord(tags)) return 'must be an object';
  const values = Object.values(tags);
  if (values.length > MOST_TAGS) return `must hold ${MOST_TAGS} pairs at most`;
  return values.every((value) => typeof value === 'string') ? undefined : 'must hold strings only';
}
