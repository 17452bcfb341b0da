import type { CleanOptions } from './browser-state.js';
import { CdpClient } from '../wire/cdp-client.js';
import { BrowserFault } from '../wire/message.js';
import type { CdpPort } from '../wire/client.js';
import { looking, type Layer } from '../wire/layer.js';
import type { Session } from '../wire/sessions.js';

/** Commands whose effect no command of the cleaning removes, with what they leave. */
const PERMANENT = {
  // The commands within are not read.
  'Target.exposeDevToolsProtocol': 'what commands within a message of the domain Target have set',
  'Target.sendMessageToTarget': 'what commands within a message of the domain Target have set',
  'PWA.install': 'a web app',
  'PWA.changeAppUserSettings': 'the settings of a web app',
  'Extensions.setStorageItems': 'data of an extension',
  'Extensions.removeStorageItems': 'data of an extension',
  'Extensions.clearStorageItems': 'data of an extension',
  'Emulation.addScreen': 'another screen',
  'Emulation.removeScreen': 'a screen less',
  'Emulation.setPrimaryScreen': 'another primary screen',
  'Emulation.updateScreen': 'a changed screen',
} as const;

/** The pages of the browser itself change its settings, such as the zoom of all sites. Three end the page, and change nothing. */
const OF_BROWSER = /^\s*(?:chrome|about):(?!\/\/(?:crash|hang|kill)\b|blank|srcdoc)/i;

/**
 * Notes what a lease installs in the browser itself, outside of all its contexts.
 *
 * @param onExtension Called with the id of an extension that was loaded.
 * @param onPermanent Called with what stays for as long as the browser runs.
 */
export function noteInstalled(onExtension: (id: string) => void, onPermanent: (what: string) => void): Layer {
  const ofUrl = (url: unknown) => {
    if (typeof url === 'string' && OF_BROWSER.test(url)) onPermanent('perhaps other settings');
  };
  const permanent = Object.entries(PERMANENT).map(
    ([name, what]) => [name, looking(() => onPermanent(what))] as const,
  );
  return {
    name: 'installed',
    commands: {
      ...Object.fromEntries(permanent),
      'Page.navigate': looking(({ url }) => ofUrl(url)),
      'Target.createTarget': looking(({ url }) => ofUrl(url)),
      'browsingContext.navigate': looking(({ url }) => ofUrl(url)),
      'goog:cdp.sendCommand': looking(({ method, params }) => {
        const name = String(method);
        if (Object.hasOwn(PERMANENT, name)) onPermanent(PERMANENT[name as keyof typeof PERMANENT]);
        ofUrl(params?.['url']);
      }),
      'Extensions.loadUnpacked': async (_command, next) => {
        const answer = await next();
        onExtension(answer.result.id);
        return answer;
      },
    },
  };
}

/**
 * Notes that the windows of the browser's own context change: the last one stays, as it is, with the blank page of the next lease.
 *
 * @param contexts Those of the lease, whose windows close with them.
 * @param isInContext Whether a session is that of a page in these contexts: Playwright resizes each of its windows.
 */
export function noteWindows(
  contexts: ReadonlySet<string>,
  isInContext: (session: Session | undefined) => boolean,
  onWindowChanged: () => void,
): Layer {
  const noted = <Params>(isChanged: (params: Params, session: Session | undefined) => boolean) =>
    looking((params: Params, session) => isChanged(params, session) && onWindowChanged());
  const ofSession = noted((_params, session) => !isInContext(session));
  return {
    name: 'windows',
    commands: {
      'Browser.setWindowBounds': ofSession,
      'Browser.setContentsSize': ofSession,
      'Target.createTarget': noted(
        ({ newWindow, browserContextId = '' }) => newWindow === true && !contexts.has(browserContextId),
      ),
      'browser.setClientWindowState': noted(() => true),
      'browsingContext.create': noted(
        ({ type, userContext }) => type === 'window' && !contexts.has(userContext ?? ''),
      ),
      'goog:cdp.sendCommand': noted(
        ({ method, params }) =>
          method === 'Browser.setWindowBounds' ||
          method === 'Browser.setContentsSize' ||
          (method === 'Target.createTarget' && params?.['newWindow'] === true),
      ),
    },
  };
}

/**
 * Removes the extensions that a lease loaded. The browser refuses to remove those with which it was started, which are its pool's.
 *
 * @throws If the browser can be destroyed, and had one: an extension can change what no command of CDP shows, such as bookmarks.
 */
export async function removeExtensions(
  cdp: CdpClient,
  { extensions, canBeDestroyed }: Pick<CleanOptions, 'extensions' | 'canBeDestroyed'>,
): Promise<void> {
  // Programs that use the URLs of the session load extensions, too.
  const ids = canBeDestroyed ? await loadedExtensions(cdp) : [...extensions];
  const remove = (id: string) =>
    cdp.send('Extensions.uninstall', { id }).then(() => true, unlessRefused(false));
  const hadSome = (await Promise.all(ids.map(remove))).includes(true) || extensions.size > 0;
  if (canBeDestroyed && hadSome) throw new Error('The lease loaded an extension.');
}

/** Whether an extension is loaded in a browser. @param socket A connection that no client uses yet. */
export async function hasExtension(socket: CdpPort, id: string): Promise<boolean> {
  return (await loadedExtensions(new CdpClient(socket))).includes(id);
}

/** A browser without the command has none that loads an extension either. */
async function loadedExtensions(cdp: CdpClient): Promise<readonly string[]> {
  const list = cdp.send('Extensions.getExtensions').then(({ extensions }) => extensions);
  return (await list.catch(unlessRefused([]))).map(({ id }) => id);
}

/** Takes the refusal of a command for this result. A browser that does not respond is another matter. */
function unlessRefused<Value>(value: Value): (error: unknown) => Value {
  return (error) => {
    if (error instanceof BrowserFault) return value;
    throw error;
  };
}
