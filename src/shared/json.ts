/** The largest text that is read as one message, in bytes: with space for escapes, below the longest string of V8. */
export const LARGEST_MESSAGE = 500 * 1024 * 1024;

/** An escaped character of `__proto__`. */
const PART_OF_PROTO = /\\u00(?:5f|6f|7[024])/i;

/** Parses JSON from outside. Drops every key `__proto__`, which would replace a prototype when it is copied. */
export function parseJson(text: string): unknown {
  // The function for each value makes the parser several times as slow. A browser escapes other characters, such as <.
  const mayHaveKey = text.includes('__proto__') || (text.includes('\\u') && PART_OF_PROTO.test(text));
  if (!mayHaveKey) return JSON.parse(text);
  return JSON.parse(text, (key, value: unknown) => (key === '__proto__' ? undefined : value));
}

/** Returns the JSON in a text from outside; undefined for any other text. */
export function jsonOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Returns the object that a text from outside contains as JSON; an empty one for any other text. */
export function recordOf(text: string): Record<string, unknown> {
  const value = jsonOf(text);
  return isRecord(value) ? value : {};
}

/** Returns true for a JSON object: not `null`, not an array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Copies a JSON value.
 *
 * @param change Applied to every string in it.
 */
export function mapStrings(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, change));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, mapStrings(inner, change)]));
}

/** Describes a value for a message. */
export function showValue(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`;
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object';
  return typeof value === 'function' ? 'a function' : String(value);
}

/** Reads a property of a value of a caller. Undefined if that throws, as a getter or a revoked proxy does. */
export function propertyOf(value: unknown, name: string): unknown {
  try {
    return (value as Record<string, unknown> | null | undefined)?.[name];
  } catch {
    return undefined;
  }
}
