const HIDDEN = '[redacted]';

/** Shorter strings are no secrets, and hiding them would blank out ordinary words. */
const SHORTEST_SECRET = 8;

/** Tokens and jwts rotate: the oldest are forgotten, so that a long-lived process does not grow. */
const MOST_SECRETS = 1000;

const secrets = new Set<string>();

/** From now on `redact` blanks this value out wherever it stands. */
export function hideSecret(secret: string): void {
  if (secret.length < SHORTEST_SECRET) return;
  secrets.delete(secret);
  secrets.add(secret);
  if (secrets.size > MOST_SECRETS) secrets.delete(secrets.values().next().value!);
}

/** The text without bearer tokens and jwts: those made known by `hideSecret`, and all that look like one. */
export function redact(text: string): string {
  let clean = text;
  for (const secret of secrets) clean = clean.replaceAll(secret, HIDDEN);
  return clean
    .replace(/\b(jwt|access_token|token)=[^&\s"'<>\\]+/gi, `$1=${HIDDEN}`)
    .replace(/\b(Bearer)\s+[^\s"'<>\\]+/gi, `$1 ${HIDDEN}`)
    .replace(/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, HIDDEN);
}
