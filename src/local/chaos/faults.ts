import { randomInt } from 'node:crypto';
import { REQUESTS, type RequestName } from '../http/request.js';
import { InvalidOptionError } from '../../shared/errors.js';
import { LONGEST_TIMER } from '../../shared/clock.js';
import { isRecord, showValue } from '../../shared/json.js';
import {
  check,
  checked,
  checksOf,
  group,
  oneOf,
  optional,
  readOption,
  wholeNumber,
} from '../../shared/options.js';

/** How often each fault happens, from 0 (never) to 1 (always). At most one fault happens to one request, WebSocket or lease. */
export interface LocalPoolFaultRates {
  /**
   * Rate of requests that are answered with 429, 500, 502, 503 or 504 and not processed.
   * @default 0
   */
  status?: number | undefined;
  /**
   * Rate of requests that are processed, and answered up to 3 s later.
   * @default 0
   */
  delay?: number | undefined;
  /**
   * Rate of requests whose connection is reset before they are processed.
   * @default 0
   */
  resetBefore?: number | undefined;
  /**
   * Rate of requests that are processed, and whose connection is reset instead of an answer.
   * @default 0
   */
  resetAfter?: number | undefined;
  /**
   * Rate of requests that are processed, and whose connection ends in the middle of the answer.
   * @default 0
   */
  truncate?: number | undefined;
  /**
   * Rate of requests that are processed and never answered; the connection stays open.
   * @default 0
   */
  noAnswer?: number | undefined;
  /**
   * Rate of WebSocket upgrades that are refused with 429, 500, 502, 503 or 504.
   * @default 0
   */
  refuseUpgrade?: number | undefined;
  /**
   * Rate of WebSocket upgrades that are never answered.
   * @default 0
   */
  noUpgrade?: number | undefined;
  /**
   * Rate of WebSockets that are reset within 3 s.
   * @default 0
   */
  resetSocket?: number | undefined;
  /**
   * Rate of WebSockets that go silent within 3 s; the connection stays open.
   * @default 0
   */
  muteSocket?: number | undefined;
  /**
   * Rate of leases whose Chromium is killed within 3 s.
   * @default 0
   */
  killBrowser?: number | undefined;
  /**
   * Rate of leases that expire within 3 s, as without a connection for too long.
   * @default 0
   */
  expireLease?: number | undefined;
}

/**
 * The name of a fault.
 *
 * @inline
 */
type FaultName = keyof LocalPoolFaultRates;

/**
 * A place where a fault can happen.
 *
 * @inline
 */
export type FaultPlace = RequestName | 'socket' | 'lease';

/** One fault. The event `chaos` has the same fields: faults that were logged can be passed as a list. */
export interface LocalPoolFault {
  /** The fault. */
  fault: FaultName;
  /** The place: a request, by its meaning, a WebSocket of CDP or BiDi, or a lease. */
  at: FaultPlace;
  /** Number of the request, WebSocket or lease at that place, in the order of arrival, from 1. */
  nth: number;
  /** Status of the answer, for `status` and `refuseUpgrade`. Default: chosen by the seed. */
  status?: number | undefined;
  /** Milliseconds until the fault happens, for all faults that say "within" or "later". Default: chosen by the seed. */
  milliseconds?: number | undefined;
}

/** The option of `startLocalPool`. */
export interface ChaosOptions {
  /** Faults to cause, to prove that a client survives them. Default: none. */
  chaos?: LocalPoolChaos | undefined;
}

/** The option `chaos` causes a fault. */
export type ChaosEvent = Readonly<LocalPoolFault> & { readonly type: 'chaos'; readonly seed: number };

/** Faults that the local pool causes on purpose. */
export interface LocalPoolChaos {
  /** Number that decides every choice: with the same seed, the same requests have the same faults. Default: random. */
  seed?: number | undefined;
  /** Rates by fault, or the exact faults. Default: a rate of 0.02 for each fault. */
  faults?: LocalPoolFaultRates | readonly LocalPoolFault[] | undefined;
}

/** What each fault happens to, in the order in which the rates are applied; and the value that the fault has. */
export const FAULTS: Readonly<
  Record<FaultName, readonly [of: 'request' | 'socket' | 'lease', value?: 'status' | 'milliseconds']>
> = {
  status: ['request', 'status'],
  delay: ['request', 'milliseconds'],
  resetBefore: ['request'],
  resetAfter: ['request'],
  truncate: ['request'],
  noAnswer: ['request'],
  refuseUpgrade: ['socket', 'status'],
  noUpgrade: ['socket'],
  resetSocket: ['socket', 'milliseconds'],
  muteSocket: ['socket', 'milliseconds'],
  killBrowser: ['lease', 'milliseconds'],
  expireLease: ['lease', 'milliseconds'],
};

const faultNames = Object.keys(FAULTS) as FaultName[];

const rate = optional(
  check<number>('a number from 0 to 1', (value) => typeof value === 'number' && value >= 0 && value <= 1),
  0,
);

const rates = checksOf<LocalPoolFaultRates>()(
  Object.fromEntries(faultNames.map((name) => [name, rate])) as Record<FaultName, typeof rate>,
);

const faultChecks = checksOf<LocalPoolFault>()({
  fault: oneOf(...faultNames),
  at: oneOf<FaultPlace>(...REQUESTS, 'socket', 'lease'),
  nth: wholeNumber(1),
  status: optional(wholeNumber(400, 599)),
  milliseconds: optional(wholeNumber(0, LONGEST_TIMER)),
});

/** Rate of each fault when only a seed is given. */
const DEFAULT_RATE = 0.02;

const DEFAULT_RATES: LocalPoolFaultRates = Object.fromEntries(faultNames.map((name) => [name, DEFAULT_RATE]));

const planChecks = checksOf<LocalPoolChaos>()({
  seed: optional(wholeNumber(0, 0xff_ff_ff_ff)),
  faults: optional(
    checked<LocalPoolFaultRates | readonly LocalPoolFault[]>((faults) =>
      isRecord(faults) || Array.isArray(faults) ? undefined : `must be rates by fault, or an array of faults`,
    ),
  ),
});

export const chaosChecks = checksOf<ChaosOptions>()({ chaos: optional(group(planChecks)) });

/** Which faults happen. */
export interface ChaosPlan {
  readonly seed: number;
  readonly rates: Readonly<Record<FaultName, number>>;
  readonly faults: readonly LocalPoolFault[];
}

/** Checks the faults and adds the defaults. @throws InvalidOptionError */
export function readChaos({ seed = randomInt(2 ** 32), faults = DEFAULT_RATES }: LocalPoolChaos): ChaosPlan {
  if (!Array.isArray(faults)) return { seed, rates: readRates(faults as LocalPoolFaultRates), faults: [] };
  return { seed, rates: readRates({}), faults: faults.map(readFault) };
}

function readRates(given: LocalPoolFaultRates): ChaosPlan['rates'] {
  const read = readOption(group(rates), 'chaos.faults', given);
  for (const place of ['acquire', 'socket', 'lease'] as const) {
    const names = faultsAt(place);
    const sum = names.reduce((all, name) => all + read[name], 0);
    if (sum <= 1) continue;
    const message = `The rates of ${names.join(', ')} must not add up to more than 1, not ${sum.toFixed(2)}.`;
    throw new InvalidOptionError('chaos.faults', message);
  }
  return read;
}

function readFault(given: LocalPoolFault, index: number): LocalPoolFault {
  const option = `chaos.faults[${index}]`;
  const read = readOption(group(faultChecks), option, given);
  const possible = faultsAt(read.at);
  if (possible.includes(read.fault)) return read;
  const message = `${option}: ${read.fault} cannot happen at ${showValue(read.at)}. Possible there: ${possible.join(', ')}.`;
  throw new InvalidOptionError(option, message);
}

/** The faults that can happen at this place. */
export function faultsAt(place: FaultPlace): FaultName[] {
  const kind = place === 'socket' || place === 'lease' ? place : 'request';
  return faultNames.filter((name) => FAULTS[name][0] === kind);
}
