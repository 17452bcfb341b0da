import { secrets } from './process-state.js';

const HIDDEN = '[redacted]';

/** Shorter strings are not hidden: `redact` would remove ordinary words. */
const SHORTEST_SECRET = 8;

/** Number of characters by which `redact` finds the known secrets. */
const WINDOW = 4;

/** Tokens rotate: the oldest are dropped, so that a long-lived process does not grow. */
const MOST_SECRETS = 1000;

/** Maximum length of a secret that begins before the end of an excerpt. */
const LONGEST_SECRET = 8192;

/** Named secrets, in a URL or in JSON, escaped or not: encoders write & as \u0026 and = as %3D. */
const NAMED =
  /(?:(?<![a-z])|(?<=%[0-9a-f]{2}))(jwt|access_token|token)(=|%3D|\\?["']\s*:\s*\\?["'])[^&\s"'<>\\]+/gi;

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
  if (known.delete(secret)) known.add(secret);
  else remember(secret);
  if (known.size > MOST_SECRETS) forget(known.values().next().value!);
}

function remember(secret: string): void {
  secrets.known.add(secret);
  const { byBeginning } = secrets;
  for (const form of formsOf(secret)) {
    const beginning = beginningOf(form);
    const forms = [...(byBeginning.get(beginning) ?? []), form];
    byBeginning.set(
      beginning,
      forms.toSorted((a, b) => b.length - a.length),
    );
  }
}

function forget(secret: string): void {
  secrets.known.delete(secret);
  const { byBeginning } = secrets;
  for (const form of formsOf(secret)) {
    const beginning = beginningOf(form);
    const forms = byBeginning.get(beginning)!;
    // Once: another secret may have the same form.
    const others = forms.toSpliced(forms.indexOf(form), 1);
    if (others.length > 0) byBeginning.set(beginning, others);
    else byBeginning.delete(beginning);
  }
}

/** The first four characters as a number: `Map` finds small numbers much faster than strings. */
function beginningOf(form: string): number {
  let window = 0;
  for (let index = 0; index < WINDOW; index++) window = shift(window, form.charCodeAt(index));
  return window;
}

/** Adds a character to the number of the last four, 7 bits for each. */
function shift(window: number, character: number): number {
  return ((window << 7) | (character & 127)) & 0xfff_ffff;
}

function formsOf(secret: string): string[] {
  return [secret, ...base64Forms(secret)];
}

/** The base64 of a text that contains the secret: its characters depend on where the secret begins in a group of three. */
function base64Forms(secret: string): string[] {
  const forms = [0, 1, 2].flatMap((offset) => {
    const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)]);
    // The first and the last characters also depend on the neighbours of the secret.
    const whole = (form: string) => form.slice(Math.ceil((offset * 4) / 3), Math.floor(bytes.length / 3) * 4);
    return [whole(bytes.toString('base64')), whole(bytes.toString('base64url'))];
  });
  return [...new Set(forms)];
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

/** Removes tokens and JWTs: the values passed to `hideSecret`, and everything that has the form of a token or JWT. */
export function redact(text: string): string {
  return withoutKnown(text)
    .replace(NAMED, `$1$2${HIDDEN}`)
    .replace(USER_INFO, `//${HIDDEN}@`)
    .replace(BEARER, `$1 ${HIDDEN}`)
    .replace(JWT, HIDDEN)
    .replace(CUT_JWT, HIDDEN);
}

/** Removes the known secrets in one pass, because there may be many: a pool without JWTs adds one with each lease. */
function withoutKnown(text: string): string {
  const { byBeginning } = secrets;
  if (byBeginning.size === 0) return text;
  let clean = '';
  let rest = 0;
  let window = 0;
  for (let end = 0; end < text.length; end++) {
    window = shift(window, text.charCodeAt(end));
    const begin = end - WINDOW + 1;
    if (begin < rest) continue;
    const form = byBeginning.get(window)?.find((one) => text.startsWith(one, begin));
    if (form === undefined) continue;
    clean += text.slice(rest, begin) + HIDDEN;
    rest = begin + form.length;
    end = rest - 1;
  }
  return clean + text.slice(rest);
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
