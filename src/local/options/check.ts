import { InvalidOptionError } from '../../shared/errors.js';
import { isRecord } from '../../shared/json.js';

/** Whose options these are, for messages. */
export const CALLER = 'startLocalPool';

export function checkObject(value: unknown, option: string): void {
  check(isRecord(value), option, 'an object', value);
}

/** Throws an error that names the option, unless the condition holds. */
export function check(holds: boolean, option: string, expected: string, value?: unknown): void {
  if (!holds) throw invalid(option, expected, value);
}

function invalid(option: string, expected: string, value?: unknown): InvalidOptionError {
  const got = value === undefined ? '' : ` It is ${describe(value)}.`;
  return new InvalidOptionError(option, `The option ${option} must be ${expected}.${got}`);
}

function describe(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number'
    ? JSON.stringify(value)
    : `of type ${typeof value}`;
}

export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

export function isAboveZero(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value) && value > 0;
}
