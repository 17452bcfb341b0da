import * as api from '../../src/index.js';
import { Wire } from '../../src/wire/wire.js';
import { Host } from '../../src/pool/host.js';
import * as services from '../../src/services.js';
import { clock } from '../../src/shared/clock.js';
import type { Random } from '../support/random.js';
import type { Fault, Rates } from './faults.js';
import { VirtualClock } from './virtual-clock.js';

/** The library under test, with the two classes that use the network, and its clock. */
export interface Library {
  api: typeof api;
  services: typeof services;
  Host: typeof Host;
  Wire: typeof Wire;
  clock: typeof clock;
}

export const library: Library = { api, services, Host, Wire, clock };

const EPOCH = Date.parse('2026-01-02T03:04:05Z');

/** What all parts of a simulated world share: its clock, its random numbers, its faults, and a log. */
export class World {
  readonly library: Library;
  readonly random: Random;
  readonly clock: VirtualClock;
  readonly rates: Rates;
  /** The rules that were broken. */
  readonly violations: string[] = [];
  /** The log, if it was requested. */
  readonly story: string[] | undefined;

  constructor(random: Random, options: { library: Library; rates: Rates; story: boolean }) {
    this.random = random;
    this.library = options.library;
    this.rates = options.rates;
    this.clock = new VirtualClock(random, options.library.clock);
    this.story = options.story ? [] : undefined;
  }

  /** The time by the service's clock. */
  get date(): Date {
    return new Date(EPOCH + this.clock.now);
  }

  /** Whether this fault happens now. */
  strikes(fault: Fault): boolean {
    const rate = this.rates.get(fault);
    const strikes = rate !== undefined && this.random.chance(rate);
    if (strikes) this.tell(`! ${fault}`);
    return strikes;
  }

  tell(what: string): void {
    this.story?.push(`${Math.round(this.clock.now).toString().padStart(9)} ms  ${what}`);
  }

  violate(what: string): void {
    this.tell(`VIOLATION ${what}`);
    this.violations.push(what);
  }
}
