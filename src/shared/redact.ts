import { secrets } from './process-state.js';

const HIDDEN = '[redacted]';

/** Shorter strings are not hidden: `redact` would remove ordinary words. */
const SHORTEST_SECRET = 8;

/** Tokens rotate: the oldest are dropped, so that a long-lived process does not grow. */
const MOST_SECRETS = 200;

/** Maximum length of a secret that begins before the end of an excerpt. */
const LONGEST_SECRET = 8192;

/** User name and password in a URL. */
const USER_INFO = /(?<=:)\/\/[^\s/?#@"'<>\\]+@/g;

/** Header and payload of a JWT are JSON objects: `{"` is `eyJ` in base64. It may be part of a longer word. */
const JWT = /eyJ[\w-]{5,}\.eyJ[\w-]*(\.[\w-]*)*/g;
const ONLY_JWT = new RegExp(`^${JWT.source}$`);

/** The beginning of a JWT, cut off. */
const CUT_JWT = /(?<![A-Za-z])eyJ[\w-]{5,}(\.[\w-]*)*/g;

const BEARER = /\b(Bearer)\s+[^\s"'<>\\]+/gi;

/** Makes `redact` remove this value from every text, also in base64. */
export function hideSecret(secret: string): void {
  // A pattern finds JWTs. Storing them would slow `redact` down: each lease has two.
  if (secret.length < SHORTEST_SECRET || ONLY_JWT.test(secret)) return;
  const { known } = secrets;
  const forms = known.get(secret) ?? formsOf(secret);
  known.delete(secret);
  known.set(secret, forms);
  if (known.size > MOST_SECRETS) known.delete(known.keys().next().value!);
}

/** Makes `redact` remove the values of these parameters of URLs and fields of JSON. */
export function hideParameters(names: readonly string[]): void {
  if (names.every((name) => secrets.parameters.has(name))) return;
  for (const name of names) secrets.parameters.add(name);
  secrets.named = undefined;
}

/**
 * Makes `redact` remove the values that these parameters and fields have in a text, such as a URL or JSON, also where they stand
 * without their name.
 */
export function hideValuesIn(text: string): void {
  for (const [whole, name = '', sign = ''] of text.matchAll(namedPattern())) {
    const value = whole.slice(name.length + sign.length);
    hideSecret(value);
    hideSecret(decoded(value));
  }
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

/** Named secrets, in a URL or in JSON, escaped or not: encoders write & as \u0026 and = as %3D. */
function namedPattern(): RegExp {
  return (secrets.named ??= new RegExp(
    `(?:(?<![a-z])|(?<=%[0-9a-f]{2}))(${[...secrets.parameters].join('|')})(=|%3D|\\\\?["']\\s*:\\s*\\\\?["'])[^&\\s"'<>\\\\]+`,
    'gi',
  ));
}

/**
 * The secret, and the base64 of a text that contains it, whose characters depend on where the secret begins in a group of
 * three.
 */
function formsOf(secret: string): string[] {
  const forms = [0, 1, 2].flatMap((offset) => {
    const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)]);
    // The first and the last characters also depend on the neighbours of the secret.
    const whole = (form: string) => form.slice(Math.ceil((offset * 4) / 3), Math.floor(bytes.length / 3) * 4);
    return [whole(bytes.toString('base64')), whole(bytes.toString('base64url'))];
  });
  return [...new Set([secret, ...forms])];
}

/** C0 and C1 control characters, line separators, and the characters that change the direction of text. */
const UNSAFE = /[\p{Cc}\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu;

/** The codes with which libraries colour their messages. */
const COLORS = new RegExp(`${String.fromCharCode(27)}\\[[\\d;]*m`, 'g');

export function withoutColors(text: string): string {
  return text.replaceAll(COLORS, '');
}

/**
 * Escapes text from outside: the characters that control a terminal, forge a line, or change the direction of text. In
 * the notation of JSON, so that escaped JSON is still valid. Colours are removed.
 */
export function printable(text: string): string {
  return withoutColors(text).replaceAll(UNSAFE, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** Escapes each line of a text that may have several. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

/**
 * Shortens text from outside for a message, on one line. Redacts first, because no pattern finds a part of a secret.
 */
export function excerpt(text: string, length: number): string {
  const clean = printable(
    redact(text.slice(0, length + LONGEST_SECRET))
      .replaceAll(/\s+/g, ' ')
      .trim(),
  );
  return clean.length > length ? `${clean.slice(0, length)}…` : clean;
}

/**
 * Removes tokens and JWTs: the values passed to `hideSecret`, the parameters passed to `hideParameters`, and everything that
 * has the form of a token or JWT.
 */
export function redact(text: string): string {
  return withoutKnown(text)
    .replace(namedPattern(), `$1$2${HIDDEN}`)
    .replace(USER_INFO, `//${HIDDEN}@`)
    .replace(BEARER, `$1 ${HIDDEN}`)
    .replace(JWT, HIDDEN)
    .replace(CUT_JWT, HIDDEN);
}

function withoutKnown(text: string): string {
  const found: string[] = [];
  for (const forms of secrets.known.values())
    for (const form of forms) if (text.includes(form)) found.push(form);
  // A secret may be the beginning of another one.
  return found
    .toSorted((one, other) => other.length - one.length)
    .reduce((clean, form) => clean.replaceAll(form, HIDDEN), text);
}

/** The value of a parameter in the query or in the fragment of a URL, and a query without parameters. */
const URL_VALUE = /([?&#][\w.~%[\]-]{1,100}=)[^\s&#"'<>\\)]+/g;
const BARE_QUERY = /(\b\w+:\/\/[^\s?#"'<>\\)]*\?)[^\s=&#"'<>\\)]+(?![^\s#"'<>\\)])/g;

/** Removes what `redact` does, and the values in the queries of all URLs: a page may have secrets of its own there. */
export function redactUrls(text: string): string {
  return redact(text).replace(URL_VALUE, `$1${HIDDEN}`).replace(BARE_QUERY, `$1${HIDDEN}`);
}

/** `inspect.custom` of node:util without importing that module, which takes a tenth of the library's import time. */
export const INSPECT: unique symbol = Symbol.for('nodejs.util.inspect.custom');
