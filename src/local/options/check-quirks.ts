import { rejectUnknownOptions } from '../../shared/errors.js';
import type { LocalPoolQuirks } from '../options.js';
import { check, CALLER, checkObject } from './check.js';

/** Each quirk decided. */
export type CheckedQuirks = {
  readonly [quirk in keyof LocalPoolQuirks]-?: NonNullable<LocalPoolQuirks[quirk]>;
};

/** Checks the option `quirks`. */
export function checkQuirks(quirks: LocalPoolQuirks): CheckedQuirks {
  checkObject(quirks, 'quirks');
  rejectUnknownOptions(quirks, Object.keys(QUIRKS), `${CALLER} in quirks`);
  for (const [quirk, allowed] of Object.entries(QUIRKS)) {
    const value: unknown = quirks[quirk as keyof LocalPoolQuirks];
    const isAllowed = value === undefined || (allowed as readonly unknown[]).includes(value);
    check(isAllowed, `quirks.${quirk}`, `one of ${allowed.join(', ')}`, value);
  }
  return {
    unavailableStatus: quirks.unavailableStatus ?? 204,
    answersAtOnce: quirks.answersAtOnce ?? false,
    nameConflictStatus: quirks.nameConflictStatus ?? 409,
    keepsSessionId: quirks.keepsSessionId ?? true,
    bidiSession: quirks.bidiSession ?? 'new',
    liveViewsHeadless: quirks.liveViewsHeadless ?? false,
    recordsHeadless: quirks.recordsHeadless ?? true,
  };
}

const QUIRKS = {
  unavailableStatus: [204, 408, 409, 429, 503, 504],
  answersAtOnce: [true, false],
  nameConflictStatus: [409, 422],
  keepsSessionId: [true, false],
  bidiSession: ['new', 'existing'],
  liveViewsHeadless: [true, false],
  recordsHeadless: [true, false],
} as const;
