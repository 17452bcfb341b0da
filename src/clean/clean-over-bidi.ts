import { raceTimeout } from '../shared/abort.js';
import { CdpClient } from '../wire/cdp-client.js';
import type { CleanOptions } from './browser-state.js';
import { ANSWER_TIMEOUT, cleanBrowser } from './clean-browser.js';
import { until } from '../shared/until.js';
import { isBlank } from '../shared/urls.js';
import type { CommandParams } from '../wire/message.js';
import { looking, type Answer, type Layer } from '../wire/layer.js';
import type { CdpPort } from '../wire/client.js';
import { writtenMessage } from '../wire/message.js';

/** The user context that every browser has, and that no command removes. */
const OWN = 'default';

/** Time until all pages of a lease must be closed, in ms. The cleaning as a whole has a timeout, too. */
const CLOSE_TIMEOUT = 4500;

/** Time until a page must be left, in ms: a dialog or a script may prevent it. */
const LEAVE_TIMEOUT = 1000;

const RUNNING = 'A page of the lease is still open.';

/** Notes what a lease does over WebDriver BiDi that no page shows, and that outlasts the connection. */
export class BidiWatch {
  /** Whether the connection began the session of the browser, and not its service. */
  hasBegunSession = false;
  /** What no command removes. */
  readonly left: Set<string>;
  readonly layer: Layer;

  /**
   * @param left Receives what no command removes, of all connections of a lease.
   * @param onOwnContextUsed Called with a command for the browser's own context, which may have no page there.
   */
  constructor(left: Set<string>, onOwnContextUsed: () => void) {
    this.left = left;
    const note = (userContext: string | null | undefined) => {
      if ((userContext ?? OWN) === OWN) onOwnContextUsed();
    };
    const ofPartition = looking(({ partition }: CommandParams<'storage.setCookie'>) =>
      note(partition?.userContext),
    );
    this.layer = {
      name: 'bidi-watch',
      commands: {
        'permissions.setPermission': looking(({ userContext }) => note(userContext)),
        'storage.setCookie': ofPartition,
        'storage.deleteCookies': ofPartition,
        'webExtension.install': looking(() => this.left.add('an extension')),
        'browser.createUserContext': async (_command, next) => {
          const answer = await next();
          note(answer.result.userContext);
          return answer;
        },
        'browser.getUserContexts': readFirst,
        'browsingContext.getTree': readFirst,
        'session.new': async ({ client }, next) => {
          const answer = await next();
          if (client.kind === 'library') this.hasBegunSession = true;
          return answer;
        },
      },
      events: { 'browsingContext.downloadWillBegin': looking(() => this.left.add('a download')) },
    };
  }
}

/** Keeps a list that is too long from a library, in which nothing else of this process would run for minutes. */
async function readFirst<Result>(
  _command: unknown,
  next: () => Promise<Answer<Result>>,
): Promise<Answer<Result>> {
  const answer = await next();
  void answer.result;
  return answer;
}

/**
 * Does over WebDriver BiDi what `cleanBrowser` does over CDP. Chromium accepts CDP commands within BiDi. Other browsers, such as
 * Firefox, remove user contexts with all their data, but have no command that clears the storage of their own context.
 *
 * @throws If the browser refuses a command, or if something may be left.
 */
export async function cleanOverBidi(
  carrier: CdpPort,
  { watch, ...how }: CleanOptions & { readonly watch: BidiWatch },
): Promise<void> {
  const bidi = new CdpClient(carrier, {}, ANSWER_TIMEOUT);
  if (await hasCdp(bidi)) return cleanBrowser(cdpWithin(bidi, carrier.ended), how);
  const [left] = how.isOwnContextUsed ? [OF_OWN_CONTEXT] : watch.left;
  if (left !== undefined) throw new Error(`This browser has no command that removes ${left}.`);
  if (!watch.hasBegunSession) throw new Error('The lease used a session that does not end with it.');
  await removeUserContexts(bidi);
  // The session ends with its preload scripts, intercepts and overrides. Firefox does not answer a second `session.end`.
  watch.hasBegunSession = false;
  await bidi.send('session.end');
}

const OF_OWN_CONTEXT = 'the storage of its own context';

/** Whether a browser accepts CDP commands within BiDi. */
export async function hasCdp(bidi: CdpClient): Promise<boolean> {
  const command = { method: 'Browser.getVersion', params: {} };
  return bidi.send('goog:cdp.sendCommand', command).then(
    () => true,
    () => false,
  );
}

/** Carries CDP commands within BiDi. Events stay behind. */
function cdpWithin(bidi: CdpClient, ended: Promise<unknown>): CdpPort {
  return {
    ended,
    hasNoEvents: true,
    listen: () => {},
    close: () => {},
    request: ({ id, sessionId, ...command }, settle) => {
      bidi.send('goog:cdp.sendCommand', { ...command, session: sessionId }).then(
        ({ result }) => settle(writtenMessage({ id, result })),
        (error: Error) => settle(writtenMessage({ id, error: { message: error.message } })),
      );
    },
  };
}

/** Removes all user contexts, with their pages and data, and what commands set in blank pages of the browser's own context. */
async function removeUserContexts(bidi: CdpClient): Promise<void> {
  const pages = async () => (await bidi.send('browsingContext.getTree', { maxDepth: 0 })).contexts;
  const open = (type: 'tab' | 'window', beside?: Page) =>
    bidi.send('browsingContext.create', { type, referenceContext: beside?.context });
  const close = ({ context }: Page) => bidi.send('browsingContext.close', { context });
  const own = (await pages()).filter(isOwn);
  // A browser ends with its last page.
  if (own.length === 0) own.push(await open('tab'));
  /** A page can open another one when it is left, which shows only then. Resolves to false if it does not let itself be left. */
  const leave = ({ context }: Page) => {
    const navigation = { context, url: 'about:blank', wait: 'complete' };
    return raceTimeout(LEAVE_TIMEOUT, () => bidi.send('browsingContext.navigate', navigation)).then(
      () => true,
      () => false,
    );
  };
  const closeOthers = async () => {
    const all = await pages();
    const others = all.filter((page) => !isOwn(page));
    // A window exists before its page.
    const { clientWindows } = await bidi.send('browser.getClientWindows');
    const isOpening = clientWindows.some((one) =>
      all.every((page) => page.clientWindow !== one.clientWindow),
    );
    if (others.length === 0) return !isOpening;
    const wereLeft = await Promise.all(others.map(leave));
    // A page can close itself, or with the page that opened it.
    await Promise.all(others.map((page) => close(page).catch(() => {})));
    // Windows open in the order of their requests: those of a page that was not left in time are there afterwards.
    if (wereLeft.includes(false)) await close(await open('window'));
    return false;
  };
  await until(RUNNING, closeOthers, CLOSE_TIMEOUT);
  const others = async () =>
    (await bidi.send('browser.getUserContexts')).userContexts.filter((one) => !isOwn(one));
  await Promise.all((await others()).map((one) => bidi.send('browser.removeUserContext', one)));
  // After the others, whose scripts may not end: a new page comes to the front, for which the one there must answer.
  const blank = own.filter(({ url = '' }) => isBlank(url));
  // A window, with its size, closes with its last page.
  if (blank.length === own.length) await open('tab', own[0]);
  await Promise.all(blank.map(close));
  await until(RUNNING, closeOthers, CLOSE_TIMEOUT);
  if ((await others()).length > 0) throw new Error('A user context of the lease is still there.');
}

interface Page {
  readonly context: string;
  readonly url?: string | undefined;
}

function isOwn({ userContext }: { userContext?: string | null | undefined }): boolean {
  return userContext === OWN;
}
