import { closestMatch } from 'leven';
import * as v from 'valibot';
import { InvalidOptionError } from './errors.js';
import { isRecord, showValue } from './json.js';

declare const TYPES: unique symbol;

/**
 * A check of one value: the type that a caller passes, and the type after the check, with its defaults. A schema of valibot
 * whose type is hidden: the declarations of the package must compile without valibot, which is bundled.
 */
export interface Check<In = unknown, Out = In> {
  readonly [TYPES]?: { readonly in: In; readonly out: Out };
}

/** The checks of a set of options, by name. */
export type Checks = Readonly<Record<string, Check>>;

type Given<C> = C extends Check<infer In, infer _Out> ? In : never;
type Found<C> = C extends Check<infer _In, infer Out> ? Out : never;
type Plain<T> = { [Key in keyof T]: T[Key] };
/** Properties that may be undefined may be missing. */
type Loose<T> = Plain<
  { [Key in keyof T as undefined extends T[Key] ? never : Key]: T[Key] } & {
    [Key in keyof T as undefined extends T[Key] ? Key : never]?: T[Key];
  }
>;
/** What a set of checks accepts: options with a default may be left out. */
type InputOf<C> = Loose<{ -readonly [Name in keyof C]: Given<C[Name]> }>;
/** The values after the check. */
export type Checked<C> = Readonly<Loose<{ [Name in keyof C]: Found<C[Name]> }>>;

/** True for two types of objects that accept the same values. */
type Same<A, B> = [A, keyof A] extends [B, keyof B]
  ? [B, keyof B] extends [A, keyof A]
    ? true
    : false
  : false;
/** Refuses checks that do not accept exactly `Input`: the error shows both types. */
type Exactly<Input, C> =
  Same<Plain<Input>, InputOf<C>> extends true ? unknown : { expected: Plain<Input>; accepted: InputOf<C> };

/**
 * Declares the checks of an interface of options. The compiler refuses a check that is missing, or that accepts another type:
 * `checksOf<RetryOptions>()({ … })`.
 */
export function checksOf<Input extends object>() {
  return <C extends Checks>(checks: C & Exactly<Input, C>): C => checks;
}

/**
 * Checks options and adds their defaults.
 *
 * @param caller The function that takes the options, for the message.
 * @throws InvalidOptionError for the first option that is unknown or has a wrong value.
 */
export function readOptions<C extends Checks>(checks: C, given: unknown, caller: string): Checked<C> {
  const result = v.safeParse(schemaOf(group(checks)), given, { abortEarly: true });
  if (result.success) return result.output;
  const [issue] = result.issues;
  const path = v.getDotPath(issue);
  if (path === null) {
    throw new InvalidOptionError('options', `${caller} takes an object of options, not ${showValue(given)}.`);
  }
  if (issue.expected !== 'never') throw new InvalidOptionError(path, `${path} ${issue.message}.`);
  const [, owner = caller, name = path] = /^(.*)\.([^.]*)$/.exec(path) ?? [];
  throw new InvalidOptionError(path, `${owner} has no option ${name}. ${issue.message}`);
}

/** Checks a single value, for a function that takes it as an argument. */
export function readOption<In, Out>(check: Check<In, Out>, name: string, given: unknown): Out {
  return (readOptions({ [name]: check }, { [name]: given }, name) as Record<string, Out>)[name]!;
}

/** An option that may be left out. */
export function optional<In, Out>(check: Check<In, Out>): Check<In | undefined, Out | undefined>;
export function optional<In, Out>(check: Check<In, Out>, value: NoInfer<In>): Check<In | undefined, Out>;
export function optional<In, Out>(check: Check<In, Out>, value?: In): Check<In | undefined, Out | undefined> {
  return checkOf(v.optional(schemaOf(check), value as never));
}

/** A value that passes a test. */
export function check<T>(expected: string, test: (value: unknown) => boolean): Check<T> {
  return checkOf(v.custom<T>(test, mustBe(expected)));
}

/** A value without a fault; `faultOf` returns the text after the name of the option. */
export function checked<T>(faultOf: (value: unknown) => string | undefined): Check<T> {
  const isValid = (value: unknown) => faultOf(value) === undefined;
  return checkOf(v.custom<T>(isValid, ({ input }) => faultOf(input)!));
}

export function callback<F>(): Check<F> {
  return check<F>('a function', (value) => typeof value === 'function');
}

/** An AbortSignal, also of a polyfill or of a test environment. */
export function abortSignal(): Check<AbortSignal> {
  return check('an AbortSignal', (value) => isRecord(value) && 'aborted' in value);
}

export function flag(): Check<boolean> {
  return checkOf(v.boolean(mustBe('true or false')));
}

/** @param most For a time that another library waits, which may not handle that longer timers elapse at once. */
export function milliseconds(most = Number.POSITIVE_INFINITY): Check<number> {
  const limit = most === Number.POSITIVE_INFINITY ? '' : `, at most ${most}`;
  const isTime = (value: unknown) => typeof value === 'number' && value > 0 && value <= most;
  return check(`a number of milliseconds above 0${limit}`, isTime);
}

/** A number, also a fraction, that is not below 0. @param most Default: also Infinity. */
export function notNegative(kind = 'a number', most = Number.POSITIVE_INFINITY): Check<number> {
  const range = most === Number.POSITIVE_INFINITY ? '0 or more' : `from 0 to ${most}`;
  return check(`${kind}, ${range}`, (value) => typeof value === 'number' && value >= 0 && value <= most);
}

/** A whole number in a range, both ends included. */
export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): Check<number> {
  const range = most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `from ${least} to ${most}`;
  const isInRange = (value: number) => value >= least && value <= most;
  return check(
    `a whole number, ${range}`,
    (value) => typeof value === 'number' && Number.isSafeInteger(value) && isInRange(value),
  );
}

/** A count that may have no limit. */
export function countOrInfinity(least = 1): Check<number> {
  const infinity = check<number>('Infinity', (value) => value === Number.POSITIVE_INFINITY);
  return anyOf(`a whole number, ${least} or more`, wholeNumber(least), infinity);
}

/** The value `false`, for an option that can be switched off. */
export function off(): Check<false> {
  return check('false', (value) => value === false);
}

export function text(): Check<string> {
  return check('a string that is not empty', (value) => typeof value === 'string' && value !== '');
}

export function oneOf<const Choice extends string>(...choices: Choice[]): Check<Choice> {
  const list = choices.map((choice) => `'${choice}'`).join(', ');
  return checkOf(v.picklist(choices, mustBe(`one of ${list}`)));
}

/** The first alternative that accepts the value. */
export function anyOf<Alternatives extends readonly Check[]>(
  expected: string,
  ...alternatives: Alternatives
): Check<Given<Alternatives[number]>, Found<Alternatives[number]>> {
  return checkOf(v.union(alternatives.map(schemaOf), mustBe(expected))) as never;
}

/**
 * A set of options inside an option. Only own properties count as unknown: a caller may pass an AbortController as
 * `{ signal }`.
 */
export function group<C extends Checks>(
  checks: C,
  expected = 'an object of options',
): Check<InputOf<C>, Checked<C>> {
  const refuseUnknown = v.rawCheck<object>(({ dataset, addIssue }) => {
    const input = dataset.value as Record<string, unknown>;
    const key = Object.keys(input).find((name) => !Object.hasOwn(checks, name));
    if (key === undefined) return;
    const path = { type: 'object', origin: 'key', input, key, value: input[key] } as const;
    addIssue({ expected: 'never', message: hint(key, Object.keys(checks)), path: [path] });
  });
  const record = v.custom<object>(isRecord, mustBe(expected));
  const schemas = checks as unknown as v.ObjectEntries;
  return checkOf(v.pipe(record, refuseUnknown, v.object(schemas, 'is required'))) as never;
}

/** A set of options that may be given as a string, its short form. */
export function orShort<In, Out>(
  whole: Check<In, Out>,
  toWhole: (short: string) => In,
): Check<In | string, Out> {
  const expand = (given: unknown) => (typeof given === 'string' ? toWhole(given) : given);
  return checkOf(
    v.pipe(v.unknown(), v.transform(expand), schemaOf(whole) as v.GenericSchema<unknown, Out>),
  ) as never;
}

function checkOf<In, Out>(schema: v.GenericSchema<In, Out>): Check<In, Out> {
  return schema as unknown as Check<In, Out>;
}

function schemaOf<In, Out>(check: Check<In, Out>): v.GenericSchema<In, Out> {
  return check as unknown as v.GenericSchema<In, Out>;
}

function hint(name: string, known: readonly string[]): string {
  const similar = closestMatch(name, known, { maxDistance: Math.ceil(name.length / 3) });
  return similar === undefined ? `It takes: ${known.join(', ')}.` : `Did you mean ${similar}?`;
}

function mustBe(expected: string) {
  return ({ input }: v.BaseIssue<unknown>) => `must be ${expected}, not ${showValue(input)}`;
}
