import type { MessageRules } from './message-filter.js';

/** The kinds of login that a browser has itself, and remembers until its process, or a context of its own, ends. */
const OF_BROWSER = /\b(basic|digest|ntlm|negotiate)\b/i;
const CHALLENGE = /^(www|proxy)-authenticate$/i;

type Headers =
  Readonly<Record<string, unknown>> | readonly { readonly name: string; readonly value?: unknown }[];

/** Whether a response asks for a login that the browser remembers. */
function isChallenge(status: number | undefined, headers: Headers = {}): boolean {
  if (status !== 401 && status !== 407) return false;
  const all = Array.isArray(headers)
    ? headers.map(({ name, value }: { name: string; value?: unknown }) => [name, value] as const)
    : Object.entries(headers);
  return all.some(
    ([name, value]) =>
      CHALLENGE.test(name) && OF_BROWSER.test(typeof value === 'string' ? value : JSON.stringify(value)),
  );
}

/** Whether a URL has a user name or a password. */
function hasUserInfo(url: unknown): boolean {
  if (typeof url !== 'string' || !url.includes('@') || !URL.canParse(url)) return false;
  const { username, password } = new URL(url);
  return username !== '' || password !== '';
}

/**
 * Calls a function for each sign of an HTTP login that a client of a browser shows or sees: no command of the browser removes such
 * a login. What a page logs in to by itself, without a challenge that a client sees, stays unseen.
 *
 * A client that ignores the errors of certificates counts, too: its context accepts them from then on.
 */
export function httpLoginRules(onLogin: () => void): MessageRules {
  const note = (isLogin: boolean) => {
    if (isLogin) onLogin();
    return undefined;
  };
  const ofUrl = ({ url }: { readonly url?: unknown }) => note(hasUserInfo(url));
  const ofAnswer = (params: object) =>
    note(/ProvideCredentials|provideCredentials/.test(JSON.stringify(params)));
  const ofCertificates = ({ ignore }: { readonly ignore?: unknown }) => note(ignore !== false);
  const within: Readonly<Record<string, (params: object) => undefined>> = {
    'Fetch.continueWithAuth': ofAnswer,
    'Security.setIgnoreCertificateErrors': ofCertificates,
  };
  const answered = ({
    response,
  }: {
    readonly response: { readonly status: number; readonly headers: Headers };
  }) => note(isChallenge(response.status, response.headers));
  return {
    commands: {
      'Page.navigate': ofUrl,
      'Target.createTarget': ofUrl,
      'Network.loadNetworkResource': ofUrl,
      'Fetch.continueRequest': ofUrl,
      'Fetch.continueWithAuth': ofAnswer,
      'Security.setIgnoreCertificateErrors': ofCertificates,
      'Security.handleCertificateError': ({ action }) => note(action === 'continue'),
      'session.new': (params) => note(/"acceptInsecureCerts":true/.test(JSON.stringify(params))),
      'browsingContext.navigate': ofUrl,
      'network.continueRequest': ofUrl,
      'network.continueWithAuth': ofAnswer,
      'goog:cdp.sendCommand': ({ method, params = {} }) => (within[String(method)] ?? ofUrl)(params),
    },
    readsNoBodies: true,
    events: {
      'Network.responseReceived': answered,
      'Network.responseReceivedExtraInfo': ({ statusCode, headers }) =>
        note(isChallenge(statusCode, headers)),
      'Fetch.requestPaused': ({ responseStatusCode, responseHeaders }) =>
        note(isChallenge(responseStatusCode, responseHeaders)),
      'Fetch.authRequired': () => note(true),
      'network.authRequired': () => note(true),
      'network.responseStarted': answered,
      'network.responseCompleted': answered,
    },
  };
}
