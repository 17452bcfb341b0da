import { looking, type Layer } from '../wire/layer.js';
import type { Session } from '../wire/sessions.js';

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

/** Whether a command has a URL with a user name or a password. */
function hasUserInfo({ url }: { readonly url?: unknown }): boolean {
  if (typeof url !== 'string' || !url.includes('@') || !URL.canParse(url)) return false;
  const { username, password } = new URL(url);
  return username !== '' || password !== '';
}

function isAnswer(params: object): boolean {
  return /ProvideCredentials|provideCredentials/.test(JSON.stringify(params));
}

function isAccepted({ action }: { readonly action?: unknown }): boolean {
  return action === 'continue';
}

function ignoresCertificates({ ignore }: { readonly ignore?: unknown }): boolean {
  return ignore !== false;
}

const WITHIN_BIDI = new Map<
  unknown,
  (params: { readonly action?: unknown; readonly ignore?: unknown }) => boolean
>([
  ['Fetch.continueWithAuth', isAnswer],
  ['Security.setIgnoreCertificateErrors', ignoresCertificates],
  ['Security.handleCertificateError', isAccepted],
]);

/**
 * Calls a function for each sign of an HTTP login that a client of a browser shows or sees, with the session of its page: no command of
 * the browser removes such a login. What a page logs in to by itself, without a challenge that a client sees, stays unseen.
 *
 * A client that ignores the errors of certificates counts, too: its context accepts them from then on.
 */
export function noteHttpLogins(onLogin: (session: Session | undefined) => void): Layer {
  const noted = <Params>(isLogin: (params: Params) => boolean) =>
    looking((params: Params, session) => isLogin(params) && onLogin(session));
  const ofUrl = noted(hasUserInfo);
  const answered = noted(
    ({ response }: { readonly response: { readonly status: number; readonly headers: Headers } }) =>
      isChallenge(response.status, response.headers),
  );
  return {
    name: 'http-logins',
    commands: {
      'Page.navigate': ofUrl,
      'Target.createTarget': ofUrl,
      'Network.loadNetworkResource': ofUrl,
      'Fetch.continueRequest': ofUrl,
      'Fetch.continueWithAuth': noted(isAnswer),
      'Security.setIgnoreCertificateErrors': noted(ignoresCertificates),
      'Security.handleCertificateError': noted(isAccepted),
      'session.new': noted((params) => /"acceptInsecureCerts":true/.test(JSON.stringify(params))),
      'browsingContext.navigate': ofUrl,
      'network.continueRequest': ofUrl,
      'network.continueWithAuth': noted(isAnswer),
      'goog:cdp.sendCommand': noted(({ method, params = {} }) =>
        (WITHIN_BIDI.get(method) ?? hasUserInfo)(params),
      ),
    },
    events: {
      'Network.responseReceived': answered,
      'Network.responseReceivedExtraInfo': noted(({ statusCode, headers }) =>
        isChallenge(statusCode, headers),
      ),
      'Fetch.requestPaused': noted(({ responseStatusCode, responseHeaders }) =>
        isChallenge(responseStatusCode, responseHeaders),
      ),
      'Fetch.authRequired': noted(() => true),
      'network.authRequired': noted(() => true),
      'network.responseStarted': answered,
      'network.responseCompleted': answered,
    },
  };
}
