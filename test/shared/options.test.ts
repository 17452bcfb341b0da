import { expectTypeOf } from 'expect-type';
import { describe, expect, it } from 'vitest';
import {
  anyOf,
  callback,
  check,
  flag,
  group,
  milliseconds,
  oneOf,
  optional,
  readOption,
  readOptions,
  text,
  wholeNumber,
  withDefault,
  type OptionsInput,
  type OptionsOutput,
} from '../../src/shared/options.js';

const OPTIONS = {
  /** Total time to wait, in ms. */
  acquireTimeout: withDefault(milliseconds(), 300_000),
  pollTimeout: withDefault(
    anyOf(
      'milliseconds, or false',
      milliseconds(),
      check<false>('false', (value) => value === false),
    ),
    25,
  ),
  retries: optional(wholeNumber(0, 10)),
  context: withDefault(oneOf('default', 'new'), 'default'),
  onEvent: optional(callback<(event: string) => void>()),
  checkpoint: optional(group({ path: text(), again: withDefault(flag(), true) })),
};

const read = (given: unknown) => readOptions(OPTIONS, given, 'lease');

it('adds the defaults, also for options that are undefined', () => {
  expect(read({ retries: undefined, checkpoint: { path: 'a' } })).toEqual({
    acquireTimeout: 300_000,
    pollTimeout: 25,
    retries: undefined,
    context: 'default',
    onEvent: undefined,
    checkpoint: { path: 'a', again: true },
  });
});

it('infers the types of input and output', () => {
  expectTypeOf<OptionsInput<typeof OPTIONS>>().toExtend<{
    acquireTimeout?: number | undefined;
    pollTimeout?: number | false | undefined;
    context?: 'default' | 'new' | undefined;
    onEvent?: ((event: string) => void) | undefined;
  }>();
  expectTypeOf<OptionsOutput<typeof OPTIONS>['acquireTimeout']>().toEqualTypeOf<number>();
  expectTypeOf<NonNullable<OptionsInput<typeof OPTIONS>['checkpoint']>>().toExtend<{ path: string }>();
  expectTypeOf<NonNullable<OptionsOutput<typeof OPTIONS>['checkpoint']>['again']>().toEqualTypeOf<boolean>();
});

describe('an unknown option', () => {
  it.each([
    [
      { acquireTimeOut: 1 },
      'acquireTimeOut',
      'lease has no option acquireTimeOut. Did you mean acquireTimeout?',
    ],
    [{ wat: 1 }, 'wat', /^lease has no option wat\. It takes: acquireTimeout, pollTimeout/],
    [
      { checkpoint: { path: 'a', agian: 1 } },
      'checkpoint.agian',
      'checkpoint has no option agian. Did you mean again?',
    ],
  ])('%j is an error with a suggestion', (given, option, message) => {
    expect(() => read(given)).toThrow(message);
    expect(() => read(given)).toThrow(expect.objectContaining({ name: 'InvalidOptionError', option }));
  });
});

it.each([
  [{ acquireTimeout: 0 }, 'acquireTimeout must be a number of milliseconds above 0, not 0.'],
  [{ acquireTimeout: Number.NaN }, 'acquireTimeout must be a number of milliseconds above 0, not NaN.'],
  [{ pollTimeout: 'x' }, "pollTimeout must be milliseconds, or false, not 'x'."],
  [{ retries: 11 }, 'retries must be a whole number, from 0 to 10, not 11.'],
  [{ retries: null }, 'retries must be a whole number, from 0 to 10, not null.'],
  [{ context: 'old' }, "context must be one of 'default', 'new', not 'old'."],
  [{ onEvent: {} }, 'onEvent must be a function, not an object.'],
  [{ checkpoint: [] }, 'checkpoint must be an object of options, not an array.'],
  [{ checkpoint: { again: false } }, 'checkpoint.path is required.'],
  [[], 'lease takes an object of options, not an array.'],
  [null, 'lease takes an object of options, not null.'],
])('refuses %j', (given, message) => {
  expect(() => read(given)).toThrow(message);
});

it('checks a single value', () => {
  expect(readOption(text(), 'path', 'a')).toBe('a');
  expect(() => readOption(text(), 'path', '')).toThrow("path must be a string that is not empty, not ''.");
});
