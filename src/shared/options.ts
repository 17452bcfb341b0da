import { closestMatch } from 'leven';
import * as v from 'valibot';
import { InvalidOptionError } from './errors.js';
import { isRecord, showValue } from './json.js';

declare const TYPES: unique symbol;

/** One option with its check and its default: the type that a caller passes, and the type after the check. */
export interface Option<In = unknown, Out = In> {
  readonly [TYPES]?: (input: In) => Out;
}

/** A set of options by name. The comment above each entry is its public documentation. */
export type Options = Readonly<Record<string, Option<never, unknown>>>;

type InputOf<O> = O extends Option<infer In, infer _Out> ? In : never;
type OutputOf<O> = O extends Option<never, infer Out> ? Out : never;

/** The options as a caller passes them: those with a default may be left out. */
export type OptionsInput<O> = {
  [Name in keyof O as undefined extends InputOf<O[Name]> ? Name : never]?: InputOf<O[Name]>;
} & {
  [Name in keyof O as undefined extends InputOf<O[Name]> ? never : Name]: InputOf<O[Name]>;
};

/** The options after the check, with their defaults. */
export type OptionsOutput<O> = { readonly [Name in keyof O]: OutputOf<O[Name]> };

/**
 * Checks options and adds their defaults.
 *
 * @param caller The function that takes the options, for the message.
 * @throws InvalidOptionError for the first option that is unknown or has a wrong value.
 */
export function readOptions<O extends Options>(options: O, given: unknown, caller: string): OptionsOutput<O> {
  const result = v.safeParse(strictObject(options), given, { abortEarly: true });
  if (result.success) return result.output as OptionsOutput<O>;
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
export function readOption<In, Out>(option: Option<In, Out>, name: string, given: unknown): Out {
  return readOptions({ [name]: option }, { [name]: given }, name)[name]!;
}

/** An option without a default. */
export function optional<In, Out>(option: Option<In, Out>): Option<In | undefined, Out | undefined> {
  return toOption(v.optional(toSchema(option)));
}

export function withDefault<In, Out>(
  option: Option<In, Out>,
  value: NoInfer<In>,
): Option<In | undefined, Out> {
  return toOption(v.optional(toSchema(option), value as never));
}

/** A value that passes a test. */
export function check<T>(expected: string, test: (value: unknown) => boolean): Option<T> {
  return toOption(v.custom<T>(test, mustBe(expected)));
}

/** A value without a fault; `faultOf` returns the text after the name of the option. */
export function checked<T>(faultOf: (value: unknown) => string | undefined): Option<T> {
  return toOption(
    v.custom<T>(
      (value) => faultOf(value) === undefined,
      ({ input }) => faultOf(input)!,
    ),
  );
}

/** A function of the caller. */
export function callback<F>(): Option<F> {
  return check<F>('a function', (value) => typeof value === 'function');
}

/** An AbortSignal, also of a polyfill or of a test environment. */
export function abortSignal(): Option<AbortSignal> {
  return check('an AbortSignal', (value) => isRecord(value) && 'aborted' in value);
}

export function flag(): Option<boolean> {
  return toOption(v.boolean(mustBe('true or false')));
}

export function milliseconds(): Option<number> {
  return check('a number of milliseconds above 0', (value) => typeof value === 'number' && value > 0);
}

/** A whole number in a range, both ends included. */
export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): Option<number> {
  const range = most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `from ${least} to ${most}`;
  const isInRange = (value: number) => value >= least && value <= most;
  return check(
    `a whole number, ${range}`,
    (value) => typeof value === 'number' && Number.isSafeInteger(value) && isInRange(value),
  );
}

/** The value `false`, for an option that can be switched off. */
export function off(): Option<false> {
  return check('false', (value) => value === false);
}

export function text(): Option<string> {
  return check('a string that is not empty', (value) => typeof value === 'string' && value !== '');
}

export function oneOf<const Choice extends string>(...choices: Choice[]): Option<Choice> {
  const list = choices.map((choice) => `'${choice}'`).join(', ');
  return toOption(v.picklist(choices, mustBe(`one of ${list}`)));
}

/** The first alternative that accepts the value. */
export function anyOf<Ins extends readonly Option<never, unknown>[]>(
  expected: string,
  ...alternatives: Ins
): Option<InputOf<Ins[number]>, OutputOf<Ins[number]>> {
  return toOption(v.union(alternatives.map(toSchema), mustBe(expected)));
}

/** A set of options inside an option. */
export function group<O extends Options>(options: O): Option<OptionsInput<O>, OptionsOutput<O>> {
  return toOption(strictObject(options));
}

/** Only own properties count as unknown: a caller may pass an AbortController as `{ signal }`. */
function strictObject(options: Options): v.GenericSchema {
  const entries = options as Record<string, v.GenericSchema>;
  const refuseUnknown = v.rawCheck<object>(({ dataset, addIssue }) => {
    const input = dataset.value as Record<string, unknown>;
    const key = Object.keys(input).find((name) => !Object.hasOwn(entries, name));
    if (key === undefined) return;
    const path = { type: 'object', origin: 'key', input, key, value: input[key] } as const;
    addIssue({ expected: 'never', message: hint(key, Object.keys(entries)), path: [path] });
  });
  const record = v.custom<object>(isRecord, mustBe('an object of options'));
  return v.pipe(record, refuseUnknown, v.object(entries, 'is required'));
}

function hint(name: string, known: readonly string[]): string {
  const similar = closestMatch(name, known, { maxDistance: Math.ceil(name.length / 3) });
  return similar === undefined ? `It takes: ${known.join(', ')}.` : `Did you mean ${similar}?`;
}

function mustBe(expected: string) {
  return ({ input }: v.BaseIssue<unknown>) => `must be ${expected}, not ${showValue(input)}`;
}

/** The public types show no type of the schema library. */
function toOption<In, Out>(schema: v.GenericSchema): Option<In, Out> {
  return schema as unknown as Option<In, Out>;
}

function toSchema(option: Option<never, unknown>): v.GenericSchema {
  return option as unknown as v.GenericSchema;
}
