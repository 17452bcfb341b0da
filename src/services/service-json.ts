import { isRecord } from '../shared/json.js';

/** Encodes the values of a path: path`/v1/sessions/${id}`. */
export function path(parts: TemplateStringsArray, ...values: string[]): string {
  return parts.reduce((all, part, at) => all + encodeURIComponent(values[at - 1]!) + part);
}

/** Returns the value at a place of a JSON value. */
export function valueAt(json: unknown, at: readonly string[]): unknown {
  return at.reduce<unknown>((value, key) => (isRecord(value) ? value[key] : undefined), json);
}

/** Returns a required text of a response. Throws if it is missing. */
export function textAt(json: unknown, ...at: string[]): string {
  const value = valueAt(json, at);
  if (typeof value === 'string' && value !== '') return value;
  throw new Error(`lacks the required field ${at.join('.')}`);
}

/** Returns an optional text of a response; undefined if it is missing or not a text. */
export function optionalTextAt(json: unknown, ...at: string[]): string | undefined {
  const value = valueAt(json, at);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Returns a required URL of a response. Throws if it is missing, or not a URL. */
export function urlAt(json: unknown, ...at: string[]): URL {
  const text = textAt(json, ...at);
  if (URL.canParse(text)) return new URL(text);
  throw new Error(`has a field ${at.join('.')} that is not a URL`);
}

/** Returns a list of a response. Throws if it is missing. */
export function listAt(json: unknown, ...at: string[]): readonly unknown[] {
  const value = valueAt(json, at);
  if (Array.isArray(value)) return value;
  throw new Error(at.length === 0 ? 'is not a list' : `lacks the list ${at.join('.')}`);
}

/** Returns an object of a response, typed. Throws if it is none, or if it lacks one of the texts. */
export function objectAt<Fields extends object>(
  json: unknown,
  at: readonly string[],
  texts: readonly (keyof Fields & string)[],
): Fields {
  const value = valueAt(json, at);
  if (!isRecord(value))
    throw new Error(at.length === 0 ? 'is not a JSON object' : `lacks the object ${at.join('.')}`);
  for (const field of texts) textAt(value, field);
  return value as Fields;
}
