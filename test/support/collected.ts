import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { inspect } from 'node:util';
import { afterAll, beforeAll, expect } from 'vitest';

/** Tokens and jwts of the fake service begin with this text, which must never be shown. */
const CANARY = 'canary-';

/** Returns the representations of a value that contain a secret. */
export function findSecrets(value: unknown): string[] {
  const error = value instanceof Error ? value : undefined;
  const shown: Record<string, string | undefined> = {
    message: error?.message,
    stack: error?.stack,
    string: error && String(error),
    json: JSON.stringify(value),
    inspect: inspect(value),
    'inspect, all of it': inspect(value, {
      depth: Number.POSITIVE_INFINITY,
      showHidden: true,
      maxStringLength: null,
      maxArrayLength: null,
    }),
  };
  return Object.entries(shown).flatMap(([way, text]) => {
    const at = text?.indexOf(CANARY) ?? -1;
    return at === -1 ? [] : [`${way}: ${text!.slice(Math.max(0, at - 80), at + 40)}`];
  });
}

/** Fails when any representation of a value contains a secret. */
export function expectNoSecrets(...values: unknown[]): void {
  for (const value of values) expect(findSecrets(value)).toEqual([]);
}

/** The events, warnings and rejections of this process while a test file runs. */
export class Collected {
  readonly events: unknown[] = [];
  readonly warnings: unknown[] = [];
  readonly rejections: string[] = [];
  readonly #onEvent = (event: unknown) => void this.events.push(event);
  readonly #onWarning = (warning: unknown) => void this.warnings.push(warning);
  readonly #onRejection = (reason: unknown) => void this.rejections.push(inspect(reason));

  begin(): void {
    subscribe('pooled-browser:event', this.#onEvent);
    process.on('warning', this.#onWarning);
    process.on('unhandledRejection', this.#onRejection);
  }

  end(): void {
    unsubscribe('pooled-browser:event', this.#onEvent);
    process.off('warning', this.#onWarning);
    process.off('unhandledRejection', this.#onRejection);
  }
}

/**
 * Collects events on the diagnostics channel, process warnings and unhandled rejections for a whole test file, and
 * searches them for secrets at its end.
 */
export function useCollected(): Collected {
  const collected = new Collected();
  beforeAll(() => collected.begin());
  afterAll(() => {
    collected.end();
    // Without events the search would prove nothing.
    expect(collected.events.length).toBeGreaterThan(0);
    expectNoSecrets(...collected.events, ...collected.warnings);
    if (collected.rejections.length > 0)
      throw new Error(`Unhandled rejections:\n${collected.rejections.join('\n')}`);
    const leaks = collected.warnings.map(String).filter((text) => text.includes('MaxListeners'));
    expect(leaks).toEqual([]);
  });
  return collected;
}
