import type { FieldsOf, SessionOptions } from './browser-service.js';

/** A service that identifies profiles only by their ids, or only by their names. */
export function profileBy(
  kind: 'id' | 'name',
  fields: (key: string, save: boolean | undefined) => object | string,
): FieldsOf<NonNullable<SessionOptions['profile']>> {
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
}): FieldsOf<NonNullable<SessionOptions['proxy']>> {
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
