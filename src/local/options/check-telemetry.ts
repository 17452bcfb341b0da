import { rejectUnknownOptions } from '../../shared/errors.js';
import type { TelemetryCategory } from '../../service/wire.js';
import type { LocalPoolTelemetry } from '../options.js';
import { CALLER, check, checkObject } from './check.js';

/** The nine categories (interface: Telemetry shape). */
export const TELEMETRY_CATEGORIES: readonly TelemetryCategory[] = [
  'console',
  'page',
  'interaction',
  'network',
  'control',
  'connection',
  'system',
  'screenshot',
  'captcha',
];

/** The categories that are enabled. */
export function checkTelemetry(telemetry: LocalPoolTelemetry, at: string): TelemetryCategory[] {
  checkObject(telemetry, at);
  rejectUnknownOptions(telemetry, TELEMETRY_CATEGORIES, `${CALLER} in ${at}`);
  for (const category of TELEMETRY_CATEGORIES) {
    const value = telemetry[category];
    check(value === undefined || typeof value === 'boolean', `${at}.${category}`, 'a boolean', value);
  }
  return TELEMETRY_CATEGORIES.filter((category) => telemetry[category]);
}
