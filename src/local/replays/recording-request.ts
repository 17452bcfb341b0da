import { badRequest } from '../http/http-fault.js';

/** What a recording is asked for (beyond the given interface). */
export interface RecordingRequest {
  /** Frames per second. */
  readonly framerate: number;
  readonly max_duration_in_seconds?: number;
}

const DEFAULT_RATE = 10;
const HIGHEST_RATE = 60;

/** What is wrong with each field. */
const FIELDS: Readonly<Record<string, (value: unknown) => string | undefined>> = {
  framerate: (value) =>
    isIntegerIn(value, HIGHEST_RATE) ? undefined : `must be an integer from 1 to ${HIGHEST_RATE}`,
  max_duration_in_seconds: (value) =>
    isIntegerIn(value, Infinity) ? undefined : 'must be an integer of 1 or more',
  record_audio: (value) => (value === false ? undefined : 'must be false: the local pool records no sound'),
};

/** Checks the body of a request to record; a 400 lists every field that is wrong. */
export function readRecordingRequest(body: Record<string, unknown>): RecordingRequest {
  const wrong = Object.entries(body).flatMap(([field, value]) => {
    const what = Object.hasOwn(FIELDS, field) ? FIELDS[field]!(value) : 'is not known';
    return what === undefined ? [] : [`${field}: ${what}`];
  });
  if (wrong.length > 0) throw badRequest('The request is not valid.', wrong);
  return { framerate: DEFAULT_RATE, ...body };
}

function isIntegerIn(value: unknown, most: number): boolean {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= most;
}
