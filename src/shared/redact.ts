const HIDDEN = '[redacted]';

/** Shorter strings are no secrets, and hiding them would blank out ordinary words. */
const SHORTEST_SECRET = 8;

/** Tokens and jwts rotate: the oldest are forgotten, so that a long-lived process does not grow. */
const MOST_SECRETS = 1000;

/** Enough to see a secret whole that begins before the end of an excerpt. */
const LONGEST_SECRET = 8192;

/** Named secrets, in a URL or in JSON, escaped or not: encoders write & as \u0026 and = as %3D. */
const NAMED =
  /(?:(?<![a-z])|(?<=%[0-9a-f]{2}))(jwt|access_token|token)(=|%3D|\\?["']\s*:\s*\\?["'])[^&\s"'<>\\]+/gi;

/** User name and password in a URL. */
const USER_INFO = /(?<=:)\/\/[^\s/?#@"'<>\\]+@/g;

/** Header and payload of a jwt are JSON objects: `{"` is `eyJ` in base64. It may stand in the midst of a word. */
const JWT = /eyJ[\w-]{5,}\.eyJ[\w-]*(\.[\w-]*)*/g;
const ONLY_JWT = new RegExp(`^${JWT.source}$`);

/** What looks like the beginning of a jwt. */
const CUT_JWT = /(?<![A-Za-z])eyJ[\w-]{5,}(\.[\w-]*)*/g;

const BEARER = /\b(Bearer)\s+[^\s"'<>\\]+/gi;

const secrets = new Set<string>();

/** The longest first: a secret may begin with another. Missing while it is out of date. */
let ordered: readonly string[] | undefined;

/** From now on `redact` blanks this value out wherever it stands. */
export function hideSecret(secret: string): void {
  // A jwt is known by its looks: every lease brings two, and each that is remembered makes `redact` slower.
  if (secret.length < SHORTEST_SECRET || ONLY_JWT.test(secret)) return;
  secrets.delete(secret);
  secrets.add(secret);
  if (secrets.size > MOST_SECRETS) secrets.delete(secrets.values().next().value!);
  ordered = undefined;
}

/** The characters that would drive a terminal, line breaks excepted. */
const CONTROL = /[^\P{Cc}\t\n]/gu;

/** Text from outside, short enough for a message. Redacted before it is cut: half a secret is not recognized. */
export function excerpt(text: string, length: number): string {
  const clean = redact(text.slice(0, length + LONGEST_SECRET)).replaceAll(CONTROL, ' ');
  return clean.length > length ? `${clean.slice(0, length)}…` : clean;
}

/** The text without bearer tokens and jwts: those made known by `hideSecret`, and all that look like one. */
export function redact(text: string): string {
  let clean = text;
  ordered ??= [...secrets].toSorted((a, b) => b.length - a.length);
  for (const secret of ordered) if (secret.length <= clean.length) clean = clean.replaceAll(secret, HIDDEN);
  return clean
    .replace(NAMED, `$1$2${HIDDEN}`)
    .replace(USER_INFO, `//${HIDDEN}@`)
    .replace(BEARER, `$1 ${HIDDEN}`)
    .replace(JWT, HIDDEN)
    .replace(CUT_JWT, HIDDEN);
}

/**
 * By which `inspect` of node:util lets a value show itself: `inspect.custom`, without importing that module, which takes
 * a tenth of what all of the root takes, or more.
 */
export const INSPECT: unique symbol = Symbol.for('nodejs.util.inspect.custom');
