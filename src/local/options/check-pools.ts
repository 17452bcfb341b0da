import { InvalidOptionError, rejectUnknownOptions } from '../../shared/errors.js';
import { NAME_PATTERN, newId } from '../identifiers.js';
import type { LocalPoolSettings, LocalPoolViewport } from '../options.js';
import type { TelemetryCategory } from '../../service/wire.js';
import { checkTelemetry } from './check-telemetry.js';
import { check, CALLER, checkObject, isAboveZero, isText } from './check.js';

/** Settings of one pool with every default filled in. */
export interface CheckedSettings {
  readonly id: string;
  readonly name: string;
  readonly size: number;
  readonly headless: boolean;
  readonly timeoutSeconds: number;
  readonly fillRatePerMinute: number | undefined;
  readonly startUrl: string | undefined;
  readonly viewport: LocalPoolViewport | undefined;
  /** The categories that are enabled; nothing when none is declared. */
  readonly telemetry: readonly TelemetryCategory[] | undefined;
  readonly recordAll: boolean;
}

/** Checks the option `pools`. */
export function checkPools(pools: readonly LocalPoolSettings[]): CheckedSettings[] {
  check(Array.isArray(pools) && pools.length > 0, 'pools', 'an array of at least one pool', pools);
  const checked = pools.map((settings, index) => checkSettings(settings, `pools[${index}]`));
  const used = checked.flatMap(({ id, name }) => (id === name ? [id] : [id, name]));
  const twice = used.find((key, index) => used.indexOf(key) !== index);
  if (twice !== undefined)
    throw new InvalidOptionError('pools', `Two of the option pools are called ${twice}.`);
  return checked;
}

function checkSettings(settings: LocalPoolSettings, at: string): CheckedSettings {
  checkObject(settings, at);
  rejectUnknownOptions(settings, SETTINGS, `${CALLER} in ${at}`);
  const { name = 'default', id = newId(), size = 1, headless = true, timeoutSeconds = 60 } = settings;
  const { fillRatePerMinute, startUrl, viewport, recordAll = false } = settings;
  for (const [key, value] of Object.entries({ name, id })) {
    check(
      isText(value) && NAME_PATTERN.test(value),
      `${at}.${key}`,
      '1 to 255 of letters, digits, ".", "_", "-"',
      value,
    );
  }
  check(Number.isInteger(size) && size > 0, `${at}.size`, 'an integer above 0', size);
  for (const [key, value] of Object.entries({ headless, recordAll }))
    check(typeof value === 'boolean', `${at}.${key}`, 'a boolean', value);
  check(isAboveZero(timeoutSeconds), `${at}.timeoutSeconds`, 'a number above 0', timeoutSeconds);
  const noRate = fillRatePerMinute === undefined;
  check(
    noRate || isAboveZero(fillRatePerMinute),
    `${at}.fillRatePerMinute`,
    'a number above 0',
    fillRatePerMinute,
  );
  check(
    startUrl === undefined || (isText(startUrl) && URL.canParse(startUrl)),
    `${at}.startUrl`,
    'a whole URL',
    startUrl,
  );
  if (viewport !== undefined) checkViewport(viewport, `${at}.viewport`);
  const telemetry = settings.telemetry && checkTelemetry(settings.telemetry, `${at}.telemetry`);
  return {
    id,
    name,
    size,
    headless,
    timeoutSeconds,
    fillRatePerMinute,
    startUrl,
    viewport,
    telemetry,
    recordAll,
  };
}

const SETTINGS = [
  'name',
  'id',
  'size',
  'headless',
  'timeoutSeconds',
  'fillRatePerMinute',
  'startUrl',
  'viewport',
  'telemetry',
  'recordAll',
];

function checkViewport(viewport: LocalPoolViewport, at: string): void {
  checkObject(viewport, at);
  rejectUnknownOptions(viewport, ['width', 'height'], `${CALLER} in ${at}`);
  for (const side of ['width', 'height'] as const) {
    const pixels = viewport[side];
    check(Number.isInteger(pixels) && pixels > 0, `${at}.${side}`, 'an integer above 0', pixels);
  }
}
