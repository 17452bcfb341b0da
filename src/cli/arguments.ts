import { InvalidArgumentError } from 'commander';

/** Reads a whole number from `least` to `most`. */
export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): (text: string) => number {
  const range = most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `${least} to ${most}`;
  return (text) => {
    const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (number >= least && number <= most) return number;
    throw new InvalidArgumentError(`It must be a whole number, ${range}.`);
  };
}

/** Reads a number above 0. */
export function numberAboveZero(text: string): number {
  const number = text.trim() === '' ? Number.NaN : Number(text);
  if (Number.isFinite(number) && number > 0) return number;
  throw new InvalidArgumentError('It must be a number above 0.');
}

const UNITS = { ms: 1, s: 1000, m: 60_000 } as const;

/** Reads a time with its unit, such as `500ms`, `30s` or `5m`, as milliseconds. */
export function time(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m)$/.exec(text) ?? [];
  const milliseconds = Number(number) * UNITS[unit as keyof typeof UNITS];
  if (milliseconds > 0) return milliseconds;
  throw new InvalidArgumentError('It must be a time above 0 with its unit, such as 500ms, 30s or 5m.');
}

/** Reads `key=value`, and adds it to those before. */
export function pair(text: string, pairs: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, key, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (key === undefined || value === undefined) throw new InvalidArgumentError('It must be key=value.');
  if (Object.hasOwn(pairs, key)) throw new InvalidArgumentError(`There are two of ${key}.`);
  return { ...pairs, [key]: value };
}
