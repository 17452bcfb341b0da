import { setTimeout as sleep } from 'node:timers/promises';
import { raceAbort } from '../shared/abort.js';

/**
 * While a service fails, its callers take turns: one at a time asks again, after a pause that grows with each failure,
 * and the others wait for what comes of it. However many wait, the service gets one request at a time, and all go on as
 * soon as it is back. Retries of their own would keep it down.
 */
export class OutageGate {
  static readonly #gates = new Map<string, OutageGate>();

  /** The gate of all callers of one service. */
  static of(baseUrl: string): OutageGate {
    const gate = this.#gates.get(baseUrl) ?? new OutageGate();
    this.#gates.set(baseUrl, gate);
    return gate;
  }

  /** Failures in a row, over all callers. */
  #failures = 0;
  #hasProbe = false;
  readonly #line = new Set<() => void>();

  /**
   * Waits for a turn. Resolves to true for the one that asks next, who owes `probed`, and to false for all once the
   * service is back.
   *
   * @param pause Milliseconds to wait before asking, after so many failures.
   */
  async turn(pause: (failures: number) => number, signal: AbortSignal): Promise<boolean> {
    this.#failures ||= 1;
    while (this.#hasProbe) {
      await this.#wake(signal);
      if (this.#failures === 0) return false;
    }
    this.#hasProbe = true;
    try {
      await sleep(pause(this.#failures), undefined, { signal });
      return true;
    } catch (error) {
      this.#passOn();
      throw error;
    }
  }

  /** What came of asking. Any answer that is no failure opens the gate, whoever got it. */
  probed({ failed }: { failed: boolean }): void {
    this.#failures = failed ? this.#failures + 1 : 0;
    this.#passOn();
  }

  /** A request that was nobody's turn got an answer. */
  answered(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    for (const wake of this.#line) wake();
  }

  #passOn(): void {
    this.#hasProbe = false;
    if (this.#failures === 0) for (const wake of this.#line) wake();
    else this.#line.values().next().value?.();
  }

  /** Waits in line. Whoever leaves it just as its turn came hands the turn on. */
  async #wake(signal: AbortSignal): Promise<void> {
    let isWoken = false;
    let wake!: () => void;
    const woken = new Promise<void>((resolve) => {
      wake = () => {
        isWoken = true;
        this.#line.delete(wake);
        resolve();
      };
    });
    this.#line.add(wake);
    try {
      await raceAbort(woken, signal);
    } catch (error) {
      this.#line.delete(wake);
      if (isWoken && !this.#hasProbe) this.#passOn();
      throw error;
    }
  }
}
