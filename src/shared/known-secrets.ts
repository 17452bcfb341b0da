/** Receives the position of the first character of a secret in a text, and of the character after its last one. */
export type Found = (start: number, end: number) => void;

/** Shorter values of a service are not hidden: they would remove ordinary words. */
export const SHORTEST = 8;

/** The same for secrets of the user, which are hidden where they stand as a whole word. */
const SHORTEST_OF_USER = 4;

/** Most secrets of services that are kept. The oldest are dropped, so that a long-lived process does not grow. */
const MOST_OF_SERVICES = 200;

/** Most tokens that the user's functions returned. */
const MOST_ROTATED = 10_000;

/** A longer secret is hidden piece by piece: this is the length of a piece. */
const PIECE = 1024;

/** The longest secret: HTTP servers accept no longer header or URL. */
const LONGEST = { user: 65_536, rotated: 65_536, service: 8192 };

/** Length of the longest piece of a secret in one of its forms: one that begins before a cut ends within this length. */
export const LONGEST_FORM = 8192;

/** Who named a secret: the user; a function of the user that returns a new one from time to time; a service. */
export type SecretSource = 'user' | 'rotated' | 'service';

/**
 * The secrets that were named, in each form in which they can stand in a text.
 *
 * A text is read once, whatever the number of secrets: the hash of each eight characters leads to the forms that begin
 * with them.
 */
export class KnownSecrets {
  /** Each secret with its forms, the oldest first. A service can't displace a secret of the user. */
  readonly #lists = {
    user: new Map<string, readonly string[]>(),
    rotated: new Map<string, readonly string[]>(),
    service: new Map<string, readonly string[]>(),
  };
  /** The forms by the hash of their first characters. */
  readonly #forms = new Map<number, string[]>();
  /** The number of forms at the end of each hash: most characters of a text are rejected here. */
  #counts: Uint16Array | undefined;
  /** Secrets that are shorter than the hashed characters. */
  #words: RegExp | undefined;

  add(secret: string, source: SecretSource): void {
    if (secret.length < (source === 'service' ? SHORTEST : SHORTEST_OF_USER)) return;
    const { user, rotated, service } = this.#lists;
    if (user.has(secret)) return;
    const known = rotated.get(secret) ?? service.get(secret);
    const forms = known ?? formsOf(secret.slice(0, LONGEST[source]));
    if (!known) forms.forEach((form) => this.#index(form));
    // As the newest one of its list, and never back to the list of the services.
    const list = source === 'service' && rotated.has(secret) ? rotated : this.#lists[source];
    rotated.delete(secret);
    service.delete(secret);
    list.set(secret, forms);
    if (source === 'service') return this.#limit(service, MOST_OF_SERVICES);
    if (secret.length < SHORTEST && !known) this.#words = wordsOf([...user.keys(), ...rotated.keys()]);
    this.#limit(rotated, MOST_ROTATED);
  }

  /** Finds the secrets in a text, in time that grows with the length of the text only. */
  find(text: string, found: Found): void {
    if (this.#words)
      for (const { index, 0: word } of text.matchAll(this.#words)) found(index, index + word.length);
    const counts = this.#counts;
    if (!counts || text.length < SHORTEST) return;
    // A service could name many secrets that begin alike, and send a text of these beginnings.
    const budget = { left: MOST_EFFORT + EFFORT * text.length };
    let hash = hashOf(text, 0);
    for (let end = SHORTEST; ; end++) {
      const start = end - SHORTEST;
      const form = counts[hash >>> SHIFT] === 0 ? undefined : this.#formAt(text, start, hash, budget);
      if (form !== undefined) found(start, Math.min(text.length, start + form.length));
      if (end === text.length) return;
      hash = (Math.imul(hash, BASE) + text.charCodeAt(end) - Math.imul(text.charCodeAt(start), LAST)) | 0;
    }
  }

  /** The longest form that begins there. Without budget left, also one that may begin there: it is hidden, too. */
  #formAt(text: string, start: number, hash: number, budget: { left: number }): string | undefined {
    return this.#forms.get(hash)?.find((form) => {
      budget.left -= form.length;
      return budget.left < 0 || text.startsWith(form, start);
    });
  }

  #limit(list: Map<string, readonly string[]>, most: number): void {
    if (list.size <= most) return;
    const [oldest, forms] = list.entries().next().value!;
    list.delete(oldest);
    for (const form of forms) {
      const hash = hashOf(form, 0);
      const left = this.#forms.get(hash)!.toSpliced(this.#forms.get(hash)!.indexOf(form), 1);
      if (left.length === 0) this.#forms.delete(hash);
      else this.#forms.set(hash, left);
      this.#counts![hash >>> SHIFT]!--;
    }
  }

  #index(form: string): void {
    const hash = hashOf(form, 0);
    // The longest first: a secret may be the beginning of another one.
    const forms = [...(this.#forms.get(hash) ?? []), form].toSorted(
      (one, other) => other.length - one.length,
    );
    this.#forms.set(hash, forms);
    this.#counts ??= new Uint16Array(2 ** (32 - SHIFT));
    this.#counts[hash >>> SHIFT]!++;
  }
}

/** Compared characters for each character of a text, and for each text. Usual texts need less than one. */
const EFFORT = 32;
const MOST_EFFORT = 200_000;

/** Of the polynomial whose value is the hash. */
const BASE = 0x01000193;
const LAST = Array.from({ length: SHORTEST }).reduce<number>((product) => Math.imul(product, BASE), 1);
/** The first bits of a hash are its place in the counts. */
const SHIFT = 16;

function hashOf(text: string, start: number): number {
  let hash = 0;
  for (let at = start; at < start + SHORTEST; at++) hash = (Math.imul(hash, BASE) + text.charCodeAt(at)) | 0;
  return hash;
}

/**
 * The secret as it is, and as encoders write it: in base64 (also inside a longer text, whose characters depend on where
 * the secret begins in a group of three), in hexadecimal digits, with percent signs, and with the escapes of JSON and HTML.
 * `redact` decodes characters that are escaped one by one.
 */
function formsOf(secret: string): string[] {
  const forms = piecesOf(secret).flatMap((text) => {
    const percent = encodeURIComponent(text.toWellFormed());
    const json = JSON.stringify(text).slice(1, -1);
    return [
      text,
      percent,
      percent.replaceAll(/%[\dA-F]{2}/g, (code) => code.toLowerCase()),
      new URLSearchParams({ '': text }).toString().slice(1),
      json,
      json.replaceAll('/', String.raw`\/`),
      text.replaceAll(/[&"<>]/g, (sign) => HTML[sign]!),
      Buffer.from(text).toString('hex'),
      Buffer.from(text).toString('hex').toUpperCase(),
      ...base64Of(Buffer.from(text), 'base64'),
      ...base64Of(Buffer.from(text), 'base64url'),
    ];
  });
  return [...new Set(forms)].filter((form) => form.length >= SHORTEST);
}

const HTML: Readonly<Record<string, string>> = { '&': '&amp;', '"': '&quot;', '<': '&lt;', '>': '&gt;' };

/** The last piece overlaps the one before, so that none is short. */
function piecesOf(secret: string): string[] {
  const count = Math.ceil(secret.length / PIECE);
  return Array.from({ length: count }, (_, at) => {
    const start = Math.max(0, Math.min(at * PIECE, secret.length - PIECE));
    return secret.slice(start, start + PIECE);
  });
}

function base64Of(secret: Buffer, encoding: 'base64' | 'base64url'): string[] {
  const inside = [0, 1, 2].map((offset) => {
    const bytes = Buffer.concat([Buffer.alloc(offset), secret]);
    // The first and the last characters also depend on the neighbours of the secret.
    const last = Math.floor(bytes.length / 3) * 4;
    return bytes.toString(encoding).slice(Math.ceil((offset * 4) / 3), last);
  });
  // Alone, as HTTP Basic does, and after the name of a user: then the last characters are those of the secret.
  return [...inside, ...inside.map((form, offset) => form + tailOf(secret, offset, encoding))];
}

/** The characters of the last, incomplete group of three. */
function tailOf(secret: Buffer, offset: number, encoding: 'base64' | 'base64url'): string {
  const rest = (secret.length + offset) % 3;
  return rest === 0 ? '' : secret.subarray(-rest).toString(encoding).replaceAll('=', '');
}

/** Short secrets as whole words, also in base64. */
function wordsOf(secrets: readonly string[]): RegExp {
  const short = secrets.filter(({ length }) => length < SHORTEST);
  const words = short.flatMap((secret) => [
    secret,
    Buffer.from(secret).toString('base64').replaceAll('=', ''),
  ]);
  const escaped = words.map((word) => word.replaceAll(/\W/g, (sign) => `\\u${hexOf(sign)}`));
  return new RegExp(`(?<![\\w-])(?:${escaped.join('|')})(?![\\w-])`, 'g');
}

function hexOf(sign: string): string {
  return sign.charCodeAt(0).toString(16).padStart(4, '0');
}
