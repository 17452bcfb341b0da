import { isRecord } from '../shared/json.js';
import { proxyFault } from '../shared/network.js';
import {
  anyOf,
  checked,
  checksOf,
  flag,
  group,
  milliseconds,
  optional,
  text,
  wholeNumber,
} from '../shared/options.js';

/** What a session should have, in words that mean the same at every service. */
export interface SessionOptions {
  /** Where the browser runs, as the service calls it, such as `eu-central-1`. */
  region?: string | undefined;
  /** Size of the window in CSS pixels. */
  viewport?: { width: number; height: number } | undefined;
  /**
   * `true`: a proxy of the service; `{ country }`: one in this country, by two letters such as `de`; a URL: yours, with its user and
   * password; `{ id }`: one that is stored at the service; `false`: none.
   */
  proxy?: boolean | string | { country: string } | { id: string } | undefined;
  /** Milliseconds after which the service ends the session, whatever happens in it. Rounded up to the unit of the service. */
  timeout?: number | undefined;
  /** Hides from web pages that a program drives the browser, as well as the service can. */
  stealth?: boolean | undefined;
  /**
   * The profile (cookies and logins) that the browser begins with: its id or name, whichever the service has. `save: true`: what the
   * lease changes in it stays.
   */
  profile?:
    string | { id?: string | undefined; name?: string | undefined; save?: boolean | undefined } | undefined;
}

const size = { width: wholeNumber(1), height: wholeNumber(1) };
const profile = { id: optional(text()), name: optional(text()), save: optional(flag()) };

/** The checks of `SessionOptions`. */
export const sessionOptionsChecks = checksOf<SessionOptions>()({
  region: optional(text()),
  viewport: optional(group(size, '{ width, height } in pixels')),
  proxy: optional(checked<NonNullable<SessionOptions['proxy']>>(faultInProxy)),
  timeout: optional(milliseconds()),
  stealth: optional(flag()),
  profile: optional(anyOf('an id or a name, or { id or name, save }', text(), group(profile))),
});

/** It does not show the value, which may contain a password. */
function faultInProxy(value: unknown): string | undefined {
  if (typeof value === 'boolean') return undefined;
  if (typeof value === 'string') return proxyFault(value);
  const [[name, given] = [], ...more] = isRecord(value) ? Object.entries(value) : [];
  const isForm =
    (name === 'country' && /^[a-z]{2}$/i.test(String(given))) || (name === 'id' && typeof given === 'string');
  return isForm && more.length === 0
    ? undefined
    : "must be true, false, the URL of a proxy, { country } with two letters, such as { country: 'de' }, or { id }";
}

/** Returns the fields of a request for a value, or says after "because" why the service has none. */
type Fields<Value> = (value: Value) => object | string;

/** How a service says these options in its request, by their names. What is missing is refused, or with a text, for this reason. */
export type SessionFields =
  { readonly [Name in keyof SessionOptions]?: Fields<NonNullable<SessionOptions[Name]>> | string } | string;

/** Whom the fields belong to. */
interface Having {
  readonly name: string;
  readonly sessionOptions?: SessionFields | undefined;
}

/** Why a service can't give a session what a call wants. */
export function sessionFault(service: Having, wanted: SessionOptions = {}) {
  for (const [name, value] of Object.entries(wanted)) {
    const fields =
      value === undefined ? {} : fieldsOf(service.sessionOptions, name as keyof SessionOptions, value);
    if (typeof fields !== 'string') continue;
    const option = `sessionOptions.${name}`;
    return { option, reason: `The service ${service.name} can't do what ${option} asks, because ${fields}.` };
  }
  return undefined;
}

/** Puts the fields for what a call wants over those of a request. */
export function withSessionFields(
  create: object,
  words: SessionFields | undefined,
  wanted: SessionOptions = {},
): object {
  const all = Object.entries(wanted).filter(([, value]) => value !== undefined);
  return all.reduce<object>((body, [name, value]) => {
    const fields = fieldsOf(words, name as keyof SessionOptions, value);
    return typeof fields === 'string' ? body : merged(body, fields);
  }, create);
}

function fieldsOf(
  words: SessionFields | undefined,
  name: keyof SessionOptions,
  value: unknown,
): object | string {
  if (typeof words === 'string') return words;
  const fields = words?.[name] ?? 'it has nothing like it';
  return typeof fields === 'string' ? fields : (fields as Fields<unknown>)(value);
}

/** The second object over the first, and their objects likewise. */
function merged(below: object, above: object): object {
  const all: Record<string, unknown> = { ...below };
  for (const [name, value] of Object.entries(above)) {
    const under = all[name];
    all[name] = isRecord(under) && isRecord(value) ? merged(under, value) : value;
  }
  return all;
}

/** A service that knows profiles only by their ids, or only by their names. */
export function profileBy(
  kind: 'id' | 'name',
  fields: (key: string, save: boolean | undefined) => object | string,
): Fields<NonNullable<SessionOptions['profile']>> {
  return (profile) => {
    const { [kind]: key, save } =
      typeof profile === 'string' ? { [kind]: profile, save: undefined } : profile;
    return key === undefined ? `it knows profiles by their ${kind}s` : fields(key, save);
  };
}

/** A proxy of the caller. */
interface OwnProxy {
  readonly url: URL;
  /** Without user and password. */
  readonly server: string;
  readonly username: string;
  readonly password: string;
}

/** How a service says each form of a proxy. Those that are missing are refused. */
export function proxyAs(forms: {
  readonly none: object;
  readonly any?: object;
  readonly country?: (country: string) => object;
  readonly id?: (id: string) => object;
  readonly own?: (proxy: OwnProxy) => object;
}): Fields<NonNullable<SessionOptions['proxy']>> {
  return (proxy) => {
    if (proxy === false) return forms.none;
    if (proxy === true) return forms.any ?? 'it does not choose a proxy by itself';
    if (typeof proxy === 'string') return forms.own?.(ownProxy(proxy)) ?? 'it takes no URL of a proxy';
    if ('id' in proxy) return forms.id?.(proxy.id) ?? 'it stores no proxies';
    return forms.country?.(proxy.country) ?? 'it has no proxies by country';
  };
}

function ownProxy(text: string): OwnProxy {
  const url = new URL(text);
  const [username, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
  return { url, server: `${url.protocol}//${url.host}`, username, password };
}
