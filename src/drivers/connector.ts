import { isBlank } from '../shared/urls.js';
import { clock, delay, LONGEST_TIMER } from '../shared/clock.js';
import type { OpenUrlOptions, Observation, ObserveRequest } from './observation.js';
import type { OpenClient, ClientSocket } from './socket.js';
import type { BrowserProtocol } from '../wire/forms.js';

export type { BrowserProtocol } from '../wire/forms.js';
export type { OpenUrlOptions, Observation, ObserveRequest, PageReport } from './observation.js';

/** `'default'`: the browser's own context, with its profile; `'new'`: a fresh context, closed after the lease. */
export type ContextChoice = 'default' | 'new';

/**
 * How the tasks of `mapPooledBrowsers` in one browser are isolated from each other:
 * - `'context'`: each task has its own context;
 * - `'storage'`: tasks share one or two pages, each in a context, and the data that a site can store is cleared between them;
 * - `'none'`: all tasks share a page of the browser's own context, and nothing is cleared.
 *
 * With `contextOptions`, tasks share a context only if their options are equal, and never the browser's own one.
 */
export type Isolation = 'context' | 'storage' | 'none';

/** The argument of `Connector.connect`. */
export interface ConnectRequest {
  /** An open WebSocket to the browser. */
  readonly socket: ClientSocket;
  /** The protocol of the option `protocol`. */
  readonly protocol: BrowserProtocol;
  /** The context of the option `context`. */
  readonly context: ContextChoice;
  /** The library's options of the new context, as `checkContext` accepted them. */
  readonly contextOptions?: object | undefined;
  /** URL of the page for the callback, if the browser has such a page; otherwise any page. */
  readonly pageUrl: string | undefined;
  /** The automation library's own connect options. */
  readonly connectOptions: object;
  /** @internal Lets the features of the lease use the library's own browser, before it has a page for the callback. */
  useBrowser?(this: void, browser: object): Promise<void>;
  /** Why a call after the end of the lease fails, for a library that shows the reason of a disconnect. */
  readonly endReason: string;
  /** Milliseconds until a page must be usable; then `socket` is closed. */
  readonly timeout: number;
  /**
   * Call it when a page of the browser's own context is opened or navigated after the connect: a lease with contexts of its own
   * leaves that context untouched only if nothing happens there.
   */
  onOwnContextUsed(this: void): void;
  /** @internal The number of HTTP logins that its clients have used so far, or may have. */
  httpLogins?(this: void): number;
  /**
   * Resolves to true if a fresh context must take the place of the browser's own one, which this browser can't clear. Ask only
   * for `context: 'default'`, when the library is connected.
   */
  replacesOwnContext(this: void): Promise<boolean>;
  /**
   * Opens a WebSocket URL on loopback that leads to `socket`, for a library that connects by URL. Its path is a secret
   * that is valid for one connection. Use either this URL or `socket`.
   */
  endpoint(this: void): Promise<string>;
  /** @internal Opens a connection for a further client of the browser. The caller closes it. */
  readonly openClient: OpenClient;
  /**
   * Opens a WebSocket URL on loopback for further clients of the browser, with CDP: each connects with a new WebSocket. Its path
   * is a secret. It is closed, with its clients, when the library can no longer use `socket`.
   */
  sharedEndpoint(this: void): Promise<string>;
}

/**
 * Binds one automation library to leased browsers: connects, opens pages, cleans up and disconnects. It makes no
 * decisions about leases, retries or timeouts. `Handles` is the part of the callback's argument that comes from the
 * library.
 */
export interface Connector<Handles = unknown> {
  /** Name of the library, for errors and events. */
  readonly library: string;
  /**
   * Whether the files that it names in uploads and downloads are those of this machine.
   * @default true
   */
  readonly sharesFiles?: boolean;
  /** Returns why the library can't use this protocol, or can't isolate tasks in this way; `undefined` if it can. */
  refusal(protocol: BrowserProtocol, isolation?: Isolation): string | undefined;
  /** Whether `observe` can record traces. Otherwise the option `artifacts.trace` is refused. */
  readonly canTrace?: boolean;
  /**
   * Whether the library makes the browser save all downloads in a folder of the library, and expects the files there, as
   * Playwright does. Otherwise the option `downloads` makes the browser save them.
   */
  readonly savesDownloads?: boolean;
  /**
   * Checks the option `contextOptions` before anything is sent. Without this method, the option is refused. A context that
   * the library refuses later must reject with an `InvalidOptionError`, too: another browser would not help.
   *
   * @throws InvalidOptionError for options that the library does not have.
   */
  checkContext?(options: object, protocol: BrowserProtocol): void;
  /** Imports the library, while the acquire request waits at the service. */
  load(): Promise<unknown>;
  /** Connects to the browser, and chooses or opens its page. */
  connect(request: ConnectRequest): Promise<LibraryConnection<Handles>>;
}

/** The parts of a connector that check options. */
export type CheckingConnector = Pick<Connector, 'library' | 'refusal' | 'canTrace' | 'checkContext'>;

/** A connection of an automation library to a leased browser. */
export interface LibraryConnection<Handles> {
  /** The library's part of the callback's argument: browser, page, context. */
  readonly handles: Handles;
  /**
   * The last known URL of the page, without a request to the browser. After a reconnect, the callback receives the page
   * with this URL.
   */
  pageUrl?(): string;
  /**
   * Opens a URL in the page of these handles, for the option `startUrl`, and waits until the page has its content.
   *
   * @param how Milliseconds; and whether a page that shows something stays as it is.
   */
  openUrl?(this: void, handles: Partial<Handles>, url: string, how: OpenUrlOptions): Promise<void>;
  /** Returns false after the library's connection was closed, also by the callback. */
  isConnected(): boolean;
  /**
   * Opens a page for tasks of `mapPooledBrowsers`. `cleanup` closes it at the latest.
   *
   * @param contextOptions With these options, the page has a new context with any isolation.
   */
  openWorkspace?(isolation: Isolation, contextOptions?: object): Promise<Workspace<Handles>>;
  /** Opens a context for a test, or returns the browser's own one. `cleanup` closes a new one at the latest. */
  openContext?(choice: ContextChoice, contextOptions?: object): Promise<OpenedContext>;
  /**
   * Observes pages, for the option `artifacts`. Sends nothing to the browser by itself. With a connector that does not
   * have this method, a lease has no artifacts.
   */
  observe?(request: ObserveRequest<Handles>): Observation;
  /** Adds what to do to the message of an error of the library, whose text does not mention the lease. */
  explain?(error: unknown): void;
  /** Returns the CDP id of a page, to find out which downloads it started. */
  pageId?(handles: Handles): Promise<string>;
  /**
   * @internal The library's objects that the user of the lease may have: their methods fail with the error of the lease after its
   * end. A set can still receive objects while the lease ends.
   */
  openHandles?(): Iterable<object>;
  /** @internal The files that the library writes only when it closes their contexts. */
  readonly files?: ContextFiles | undefined;
  /**
   * Closes the contexts that this lease opened, so that the library writes what belongs to them. The pages and the data of the
   * browser's own context are none of its business. Rejects if the browser does not respond.
   */
  cleanup(): Promise<void>;
  /** Disconnects without closing the browser. */
  disconnect(): Promise<void>;
}

/** The files that a library writes only when it closes their contexts, such as a HAR. */
export interface ContextFiles {
  /** The paths of the files that are not written, or not completely. */
  unwritten(): readonly string[];
  /** Closes the contexts of these files. Rejects if one of them can't be written. */
  write(): Promise<void>;
}

/** The part of a page that both libraries have. */
interface Navigable {
  url(): string;
  goto(url: string, how: { timeout: number; waitUntil: 'domcontentloaded' }): Promise<unknown>;
}

/** `openUrl` of a connection of either library. */
export async function openUrl(
  { page }: { page?: Navigable },
  url: string,
  { timeout, onlyIfBlank = false }: OpenUrlOptions,
): Promise<void> {
  if (onlyIfBlank && !isBlank(page!.url())) return;
  const before = page!.url();
  try {
    await page!.goto(url, { timeout: Math.min(timeout, LONGEST_TIMER), waitUntil: 'domcontentloaded' });
  } catch (error) {
    await settle(page!, before, error);
    throw error;
  }
}

/** Time to end a navigation that has failed, in ms: a busy browser opens its error page late. */
export const SETTLE_TIMEOUT = 8000;

/** Chromium opens its error page some time after such a failure. */
const WITH_ERROR_PAGE = /net::ERR_(?!ABORTED)/;

/**
 * Lets a navigation end that has failed before there was any content: it would interrupt the next one, of the user of the page.
 * Never rejects.
 */
async function settle(page: Navigable, before: string, error: unknown): Promise<void> {
  const began = clock.now();
  const isErrorPage = () => page.url().startsWith('chrome-error:');
  if (WITH_ERROR_PAGE.test(String(error)))
    while (!isErrorPage() && clock.now() - began < SETTLE_TIMEOUT) await delay(SETTLE_INTERVAL);
  else if (page.url() === before)
    await page
      .goto('about:blank', { timeout: SETTLE_TIMEOUT, waitUntil: 'domcontentloaded' })
      .catch(() => {});
}

/** Time between two looks at a page, in ms. */
const SETTLE_INTERVAL = 5;

/** A session of CDP with a page, as both libraries have it. */
interface PageSession {
  send(method: 'Page.getFrameTree'): Promise<{ frameTree: { frame: { id: string } } }>;
  detach(): Promise<void>;
}

/** The CDP id of a page: that of its main frame. Ends the session. */
export async function pageIdOf(session: PageSession): Promise<string> {
  const { frameTree } = await session.send('Page.getFrameTree');
  await session.detach();
  return frameTree.frame.id;
}

/** A context in which a test opens pages: the methods that the contexts of the libraries have in common. */
export interface OpenedContext {
  /** Opens a page. */
  newPage(): Promise<Pick<OpenedContext, 'close'>>;
  /** Closes the context with its pages; of a page, only the page. */
  close(): Promise<void>;
}

/** A page in a browser that runs one task after another. */
export interface Workspace<Handles> {
  /** The library's part of the task's argument: browser, page, context. */
  readonly handles: Handles;
  /** Prepares the page for the next task. Resolves to false if the next task needs another workspace. */
  reset(): Promise<boolean>;
  /** Closes the page, and the context that was opened for it. */
  close(): Promise<void>;
}
