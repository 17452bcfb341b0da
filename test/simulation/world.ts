import type { Fault, Rates } from './faults.js';
import type { Library } from './library.js';
import type { Random } from './random.js';
import { VirtualClock } from './virtual-clock.js';

/** What all parts of a simulated world share: its time, its luck, and the memory of what happened. */
export class World {
  readonly seed: number;
  readonly library: Library;
  readonly random: Random;
  readonly clock: VirtualClock;
  readonly rates: Rates;
  /** What broke a rule. */
  readonly violations: string[] = [];
  /** What happened, in order, if it is wanted. */
  readonly story: string[] | undefined;

  constructor(seed: number, random: Random, options: { library: Library; rates: Rates; story: boolean }) {
    this.seed = seed;
    this.random = random;
    this.library = options.library;
    this.rates = options.rates;
    this.clock = new VirtualClock(random);
    this.story = options.story ? [] : undefined;
  }

  /** Whether this fault strikes now. */
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
