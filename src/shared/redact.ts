import { LONGEST_FORM, SHORTEST, type Found, type SecretSource } from './known-secrets.js';
import { secrets } from './process-state.js';

const HIDDEN = '[redacted]';

/** User name and password in a URL. */
const USER_INFO = /(?<=:\/\/)[^\s/?#@"'<>\\]+(?=@)/g;

/** Header and payload of a JWT are JSON objects: `{"` is `eyJ` in base64. */
const JWT = /^eyJ[\w-]{5,}\.eyJ[\w.-]*$/;

const BEARER = /\b(Bearer\s+)[^\s"'<>\\]+/gi;

/** Makes `redact` remove a secret that a service sent from every text, in each of its forms. */
export function hideSecret(secret: string): void {
  // A pattern finds JWTs. Storing them would displace other secrets: each lease has two.
  if (!JWT.test(secret)) secrets.known.add(secret, 'service');
}

/** Makes `redact` remove a secret of the user from every text, in each of its forms, and for ever. */
export function hideOwnSecret(secret: string, source: Exclude<SecretSource, 'service'> = 'user'): void {
  if (source === 'user' || !JWT.test(secret)) secrets.known.add(secret, source);
}

/** Makes `redact` remove the values of headers that the user chose, also without their scheme. Short values are ordinary words. */
export function hideHeaders(headers: Readonly<Record<string, string>>): void {
  for (const value of Object.values(headers))
    for (const secret of [value, ...value.split(' ')]) if (secret.length >= SHORTEST) hideOwnSecret(secret);
}

/** Makes `redact` remove the values of these parameters of URLs and fields of JSON. */
export function hideParameters(names: readonly string[]): void {
  if (names.every((name) => secrets.parameters.has(name))) return;
  for (const name of names) secrets.parameters.add(name);
  secrets.named = undefined;
}

/** Most values that one text adds to the secrets. */
const MOST_VALUES = 200;

/**
 * Makes `redact` remove the values that these parameters and fields have in a text, such as a URL or JSON, also where they stand
 * without their name.
 */
export function hideValuesIn(text: string): void {
  let left = MOST_VALUES;
  for (const [start, end] of namedValues(text)) {
    if (left-- === 0) return;
    const value = text.slice(start, end);
    for (const form of new Set([value, decoded(value, decodeURIComponent), decoded(value, unescaped)]))
      hideSecret(form);
  }
}

function decoded(value: string, decode: (text: string) => string): string {
  try {
    return decode(value);
  } catch {
    return value;
  }
}

/** Removes the escapes of JSON. */
function unescaped(value: string): string {
  return String(JSON.parse(`"${value}"`));
}

/**
 * Finds the values of named secrets in a URL, and in JSON or in what `inspect` prints, escaped or not: encoders write & as
 * \u0026 and = as %3D.
 */
function* namedValues(text: string): Generator<readonly [start: number, end: number]> {
  const name = (secrets.named ??= new RegExp(`(?:${[...secrets.parameters].join('|')})(${SIGN})`, 'gi'));
  let after = 0;
  for (;;) {
    name.lastIndex = after;
    const match = name.exec(text);
    if (!match) return;
    const before = text.slice(Math.max(0, match.index - 3), match.index);
    if (!/(?:^|[^a-z]|%[\da-f]{2})$/i.test(before)) {
      // Another name may end here, as token in access_token.
      after = match.index + 1;
      continue;
    }
    after = name.lastIndex;
    const value = VALUES[match[1]!.slice(-2).trimStart()] ?? VALUES[match[1]!.slice(-1)]!;
    value.lastIndex = after;
    if (!value.test(text)) continue;
    yield [after, value.lastIndex];
    after = value.lastIndex;
  }
}

/** What stands between a name and its value. */
const SIGN = String.raw`=|%3D|\\["']\s*:\s*\\["']|["']?\s*:\s*["']`;

/** The value by the end of the sign before it. */
const VALUES: Readonly<Record<string, RegExp>> = {
  '=': /[^&\s"'<>\\]+/y,
  D: /[^&\s"'<>\\]+/y,
  d: /[^&\s"'<>\\]+/y,
  '"': /(?:[^"\\]|\\.)+/sy,
  "'": /(?:[^'\\]|\\.)+/sy,
  // Inside a string of JSON.
  '\\"': /[^"\\]+/y,
  "\\'": /[^'\\]+/y,
};

/** C0 and C1 control characters, line separators, and the characters that change the direction of text. */
const UNSAFE = /[\p{Cc}\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/u;

/** The codes with which libraries colour their messages. */
const COLORS = new RegExp(`${String.fromCharCode(27)}\\[[\\d;]*m`, 'g');

function withoutColors(text: string): string {
  return text.replaceAll(COLORS, '');
}

/**
 * Escapes text from outside: the characters that control a terminal, forge a line, or change the direction of text. In
 * the notation of JSON, so that escaped JSON is still valid. Colours are removed.
 */
export function printable(text: string): string {
  return escaped(withoutColors(text), '');
}

/** Escapes each line of a text that may have several. */
export function printableLines(text: string): string {
  return escaped(withoutColors(text), '\n');
}

/** Not `replaceAll` with a function, which takes ten times as long for a text of these characters. */
function escaped(text: string, kept: string): string {
  const first = text.search(UNSAFE);
  if (first === -1) return text;
  const shown = new Pieces();
  let done = 0;
  for (let at = first; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const escape = code < 32 || code > 126 ? (ESCAPES[code] ??= escapeOf(code)) : '';
    if (escape === '' || text[at] === kept) continue;
    shown.add(text.slice(done, at));
    shown.add(escape);
    done = at + 1;
  }
  return shown.text + text.slice(done);
}

/** Joins many short texts: one long list of them, or adding each to a string, costs the garbage collector more than linear time. */
class Pieces {
  #text = '';
  #pieces: string[] = [];

  add(piece: string): void {
    if (this.#pieces.push(piece) < 1000) return;
    this.#text += this.#pieces.join('');
    this.#pieces = [];
  }

  get text(): string {
    return this.#text + this.#pieces.join('');
  }
}

/** The escapes of characters by their code; empty for a safe one. */
const ESCAPES: string[] = [];

function escapeOf(code: number): string {
  return UNSAFE.test(String.fromCharCode(code)) ? `\\u${code.toString(16).padStart(4, '0')}` : '';
}

/**
 * Shortens text from outside for a message, on one line, without secrets. A secret that is cut is hidden as a whole.
 *
 * @param length In characters.
 */
export function excerpt(text: string, length: number): string {
  // White space can be most of a page.
  const { shown, isCut } = shorten(text, 4 * length, secretsIn);
  const line = printable(shown.replaceAll(/\s+/g, ' ').trim());
  return isCut || line.length > length ? `${line.slice(0, length)}…` : line;
}

/**
 * Shortens a text of several lines, without secrets and colors. A secret that is cut is hidden as a whole.
 *
 * @param length In characters.
 */
export function shortened(text: string, length: number): string {
  const { shown, isCut } = shorten(text, length, secretsIn);
  return isCut ? `${shown}…` : shown;
}

/**
 * Shortens a text, and removes what `redact` does and the values in the queries of all URLs: a page may have secrets of its own
 * there. A secret that is cut is hidden as a whole.
 *
 * @param length In characters.
 */
export function shortenUrls(text: string, length: number): string {
  const { shown, isCut } = shorten(text, length, secretsInUrls);
  return isCut || shown.length > length ? `${shown.slice(0, length)}…` : shown;
}

/** The number of characters of a text that decide how `shortenUrls` shortens it. */
export function lengthBeforeCut(length: number): number {
  return length + LONGEST_FORM + 1;
}

/** Removes the secrets of the beginning of a text. What is cut off is not read. */
function shorten(whole: string, length: number, find: typeof secretsIn) {
  const most = length + LONGEST_FORM;
  // Colors may stand within a secret.
  const plain = withoutColors(whole.slice(0, 2 * most));
  const text = plain.slice(0, most);
  const isCut = plain.length > most || whole.length > 2 * most;
  // A secret that begins in the last part may be cut, and no pattern finds it there.
  const end = isCut ? Math.max(0, text.length - LONGEST_FORM) : text.length;
  return { shown: without(text, find, end), isCut };
}

/**
 * Removes tokens and JWTs: the values passed to `hideSecret` and `hideOwnSecret`, the parameters passed to
 * `hideParameters`, and everything that has the form of a token or JWT. Takes time in proportion to the length of the text.
 */
export function redact(text: string): string {
  return without(text, secretsIn);
}

/** Removes secrets, which may overlap. The text ends at `end`, or with the secret that begins before `end`. */
function without(text: string, find: (text: string, found: Found) => void, end = text.length): string {
  // The end of the secret that begins at each position. A list would have to be sorted.
  let ends: Int32Array | undefined;
  find(text, (start, after) => {
    ends ??= new Int32Array(text.length);
    ends[start] = Math.max(ends[start]!, after);
  });
  if (!ends) return text.slice(0, end);
  const shown = new Pieces();
  let done = 0;
  for (let at = 0; at < end; at++) {
    const after = ends[at]!;
    if (after <= done) continue;
    // A secret that overlaps the one before extends it.
    if (at >= done) {
      shown.add(text.slice(done, at));
      shown.add(HIDDEN);
    }
    done = after;
  }
  return shown.text + text.slice(done, Math.max(done, end));
}

function secretsIn(text: string, found: Found): void {
  plainSecretsIn(text, found);
  const decoded = decodeCharacters(text);
  if (!decoded) return;
  const { starts } = decoded;
  plainSecretsIn(decoded.text, (start, end) => found(starts[start]!, starts[end]!));
}

/** A visible character of ASCII in the escapes of JavaScript and JSON (also of JSON inside JSON), of HTML, or of a URL. */
const ENCODED =
  /\\{1,8}(?:u00|x)([2-7][\da-f])|%([2-7][\da-f])|&#x0{0,4}([2-7][\da-f]);|&#0{0,4}(3[3-9]|[4-9]\d|1[01]\d|12[0-6]);/gi;

/** Decodes single characters. Undefined if there are none. `starts`: the position in the text of each decoded character. */
function decodeCharacters(text: string): { text: string; starts: Int32Array } | undefined {
  let starts: Int32Array | undefined;
  let length = 0;
  let done = 0;
  const decoded = new Pieces();
  const copy = (end: number) => {
    decoded.add(text.slice(done, end));
    for (; done < end; done++) starts![length++] = done;
  };
  for (const { index, 0: whole, 1: escaped, 2: percent, 3: hex, 4: decimal } of text.matchAll(ENCODED)) {
    starts ??= new Int32Array(text.length + 1);
    copy(index);
    starts[length++] = index;
    done = index + whole.length;
    const code = decimal ?? Number.parseInt((escaped ?? percent ?? hex)!, 16);
    decoded.add(String.fromCharCode(Number(code)));
  }
  if (!starts) return undefined;
  copy(text.length);
  starts[length] = text.length;
  return { text: decoded.text, starts };
}

function plainSecretsIn(text: string, found: Found): void {
  secrets.known.find(text, found);
  for (const [start, end] of namedValues(text)) found(start, end);
  if (text.includes('@')) findAll(USER_INFO, text, found);
  findAll(BEARER, text, found);
  findJwts(text, found);
}

/** The value of a parameter in the query or in the fragment of a URL. */
const URL_VALUE = /([?&#][\w.~%[\]-]{1,100}=)[^\s&#"'<>\\)]+/g;

/** A part of a text without the characters that end a URL, its query included. */
const WITH_QUERY = /(?<![^\s"'<>\\)#])[^\s"'<>\\)#?]*\?[^\s"'<>\\)#]+/g;

function secretsInUrls(text: string, found: Found): void {
  secretsIn(text, found);
  if (!/[?&#]/.test(text)) return;
  findAll(URL_VALUE, text, found);
  for (const { index, 0: part } of text.matchAll(WITH_QUERY)) {
    const scheme = part.search(/\w:\/\//);
    if (scheme === -1) continue;
    // A query without parameters.
    const query = part.indexOf('?', Math.max(scheme, part.lastIndexOf('='), part.lastIndexOf('&'))) + 1;
    if (query > 0 && query < part.length) found(index + query, index + part.length);
  }
}

/** The first group of a pattern is what stands before the secret. */
function findAll(pattern: RegExp, text: string, found: Found): void {
  for (const { index, 0: whole, 1: before = '' } of text.matchAll(pattern))
    found(index + before.length, index + whole.length);
}

const NO_WORD = /[^\w-]/g;
const NO_TOKEN = /[^\w.-]/g;

/** Characters of the header of a JWT, at least. */
const SHORTEST_HEADER = 8;

/**
 * Finds JWTs, which may be a part of a longer word, and the beginnings of cut ones, which may not: `eyJ` also stands in words.
 * Not one pattern, because it would read a long word again from each `eyJ`.
 */
function findJwts(text: string, found: Found): void {
  let end = 0;
  for (let at = text.indexOf('eyJ'); at !== -1; at = text.indexOf('eyJ', at + 1)) {
    if (at >= end) end = nextOf(NO_WORD, text, at);
    if (end - at < SHORTEST_HEADER) continue;
    const isWhole = text.startsWith('.eyJ', end);
    if (!isWhole && at > 0 && /[A-Za-z]/.test(text[at - 1]!)) continue;
    const after = nextOf(NO_TOKEN, text, end);
    found(at, after);
    at = after - 1;
  }
}

/** The position of the next match, or of the end of the text. */
function nextOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex - 1 : text.length;
}

/** `inspect.custom` of node:util without importing that module, which takes a tenth of the library's import time. */
export const INSPECT: unique symbol = Symbol.for('nodejs.util.inspect.custom');
