import * as api from '../../src/index.js';
import { Socket } from '../../src/connect/socket.js';
import { Service } from '../../src/service/service.js';
import type { Random } from '../support/random.js';
import type { Fault, Rates } from './faults.js';
import { VirtualClock } from './virtual-clock.js';

/** The library under test, with the two classes that use the network. */
export interface Library {
  api: typeof api;
  Service: typeof Service;
  Socket: typeof Socket;
}

export const library: Library = { api, Service, Socket };

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
    this.clock = new VirtualClock(random);
    this.story = options.story ? [] : undefined;
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
