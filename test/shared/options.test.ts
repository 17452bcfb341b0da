import { expect, it } from 'vitest';
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
} from '../../src/shared/options.js';

const isFalse = check<false>('false', (value) => value === false);
const OPTIONS = {
  acquireTimeout: optional(milliseconds(), 300_000),
  pollTimeout: optional(anyOf('milliseconds, or false', milliseconds(), isFalse), 25),
  retries: optional(wholeNumber(0, 10)),
  context: optional(oneOf('default', 'new'), 'default'),
  onEvent: optional(callback<(event: string) => void>()),
  checkpoint: optional(group({ path: text(), again: optional(flag(), true) })),
};

const read = (given: unknown) => readOptions(OPTIONS, given, 'lease');

it('adds the defaults, also for options that are undefined', () => {
  const defaults = { acquireTimeout: 300_000, pollTimeout: 25, context: 'default' };
  expect(read({ retries: undefined, checkpoint: { path: 'a' } })).toEqual({
    ...defaults,
    checkpoint: { path: 'a', again: true },
  });
});

it.each<[unknown, option: string, message: string]>([
  [
    { acquireTimeOut: 1 },
    'acquireTimeOut',
    'lease has no option acquireTimeOut. Did you mean acquireTimeout?',
  ],
  [{ wat: 1 }, 'wat', 'lease has no option wat. It takes: acquireTimeout, pollTimeout'],
  [
    { checkpoint: { path: 'a', agian: 1 } },
    'checkpoint.agian',
    'checkpoint has no option agian. Did you mean again?',
  ],
  [{ acquireTimeout: 0 }, 'acquireTimeout', 'must be a number of milliseconds above 0, not 0.'],
  [{ acquireTimeout: Number.NaN }, 'acquireTimeout', 'must be a number of milliseconds above 0, not NaN.'],
  [{ pollTimeout: 'x' }, 'pollTimeout', "pollTimeout must be milliseconds, or false, not 'x'."],
  [{ retries: 11 }, 'retries', 'retries must be a whole number, from 0 to 10, not 11.'],
  [{ retries: null }, 'retries', 'retries must be a whole number, from 0 to 10, not null.'],
  [{ context: 'old' }, 'context', "context must be one of 'default', 'new', not 'old'."],
  [{ onEvent: {} }, 'onEvent', 'onEvent must be a function, not an object.'],
  [{ checkpoint: [] }, 'checkpoint', 'checkpoint must be an object of options, not an array.'],
  [{ checkpoint: { again: false } }, 'checkpoint.path', 'checkpoint.path is required.'],
  [[], 'options', 'lease takes an object of options, not an array.'],
  [null, 'options', 'lease takes an object of options, not null.'],
])('refuses %j, and names the option %s', (given, option, message) => {
  expect(() => read(given)).toThrow(message);
  expect(() => read(given)).toThrow(expect.objectContaining({ name: 'InvalidOptionError', option }));
});

it('checks a single value', () => {
  expect(readOption(text(), 'path', 'a')).toBe('a');
  expect(() => readOption(text(), 'path', '')).toThrow("path must be a string that is not empty, not ''.");
});
