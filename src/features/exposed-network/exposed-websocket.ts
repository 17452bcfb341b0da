import type { Browser, BrowserContext, Frame, WebSocketRoute } from 'playwright-core';
import type { RawData, WebSocket } from 'ws';
import { onAbort } from '../../shared/abort.js';
import { loadWs } from '../../shared/lazy.js';
import type { ExposedUrl } from './exposed-hosts.js';

/** The network of this machine that the pages of a lease reach (option `exposeNetwork`), for their WebSockets. */
export interface ExposedWebSockets {
  /** Matches the URLs of the exposed hosts. */
  readonly pattern: RegExp;
  /** Accepts certificates that no known authority has signed, from now on. */
  acceptInsecureCerts(this: void): void;
  /** Reads a URL that a page sent. Returns undefined if its host is not exposed. */
  read(this: void, url: string): ExposedUrl | undefined;
  /** Returns the origin of the page that opens a WebSocket now; undefined if it is opaque or not known. */
  takeOrigin(this: void, url: ExposedUrl): string | undefined;
  /** @internal Opens a WebSocket from this machine. Rejects if the server refuses it. */
  open(this: void, request: UpstreamRequest): Promise<Upstream>;
}

/** @internal A WebSocket that a page wants to open. */
export interface UpstreamRequest {
  readonly url: ExposedUrl;
  readonly protocols: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  /** Binary messages are buffers. */
  onMessage(this: void, message: string | Buffer): void;
  onClose(this: void, code: number, reason: string): void;
}

/** @internal A WebSocket from this machine. */
export interface Upstream {
  send(message: string | Buffer): void;
  close(code?: number, reason?: string): void;
}

/** @internal Opens a WebSocket from this machine, until the signal aborts. */
export async function openUpstream(
  { url, protocols, headers, onMessage, onClose }: UpstreamRequest,
  { signal, acceptsInsecureCerts }: { signal: AbortSignal; acceptsInsecureCerts: boolean },
): Promise<Upstream> {
  const { WebSocket } = await loadWs();
  signal.throwIfAborted();
  const { origin, ...others } = headers;
  const socket: WebSocket = new WebSocket(url, [...protocols], {
    headers: others,
    ...(origin !== undefined && { origin }),
    rejectUnauthorized: !acceptsInsecureCerts,
  });
  socket.once(
    'close',
    onAbort(signal, () => socket.terminate()),
  );
  // From the start: a message can arrive together with the response to the upgrade.
  socket.on('message', (data: RawData, isBinary) => onMessage(isBinary ? (data as Buffer) : String(data)));
  return new Promise<Upstream>((resolve, reject) => {
    socket.on('error', reject);
    socket.once('open', () => {
      socket.once('close', (code, reason) => onClose(code, String(reason)));
      resolve({
        send: (message) => socket.send(message),
        close: (code, reason) => {
          try {
            socket.close(isAllowed(code) ? code : GOING_AWAY, reason);
          } catch {
            // A reason can be too long: the page's own WebSocket does not check it.
            socket.terminate();
          }
        },
      });
    });
  });
}

/** What a page that is left sends to its server. */
const GOING_AWAY = 1001;
/** What a page sees if its WebSocket could not be opened. */
const ABNORMAL = 1006;

/** A client may send only these codes. */
function isAllowed(code: number | undefined): code is number {
  return code === 1000 || (code !== undefined && code >= 3000 && code <= 4999);
}

/** Routes the WebSockets of all contexts, now and later, below the routes of the user. */
export async function routeWebSockets(browser: Browser, exposed: ExposedWebSockets): Promise<void> {
  const route = (context: BrowserContext) =>
    context.routeWebSocket(exposed.pattern, (page) => join(page, context, exposed));
  const newContext = browser.newContext.bind(browser);
  // An event would come too late for the first page.
  browser.newContext = async (options) => {
    if (options?.ignoreHTTPSErrors) exposed.acceptInsecureCerts();
    const context = await newContext(options);
    await route(context);
    return context;
  };
  await Promise.all(browser.contexts().map(route));
}

/** Connects the WebSocket of a page to its server. The page sees it open when the server has accepted it. */
async function join(
  page: WebSocketRoute,
  context: BrowserContext,
  exposed: ExposedWebSockets,
): Promise<void> {
  // A script can name any URL: it calls the function of Playwright itself.
  const url = exposed.read(page.url());
  if (url === undefined) return void page.connectToServer();
  const origin = exposed.takeOrigin(url);
  const open = async () => {
    const cookie = await cookiesFor(url, context, origin);
    return exposed.open({
      url,
      protocols: page.protocols(),
      headers: { origin: origin ?? 'null', ...(cookie !== '' && { cookie }) },
      onMessage: (message) => page.send(message),
      onClose: (code, reason) => void page.close({ code, reason }),
    });
  };
  const opening = open();
  // What the page sends earlier waits for the server.
  const onceOpen = (use: (upstream: Upstream) => void) => void opening.then(use).catch(() => {});
  page.onMessage((message) => onceOpen((upstream) => upstream.send(message)));
  page.onClose((code, reason) => onceOpen((upstream) => upstream.close(code, reason)));
  await opening.catch(() => page.close({ code: ABNORMAL }));
}

/** The cookies that a browser sends with a WebSocket of this origin: those of other sites only with `SameSite=None`. */
async function cookiesFor(
  url: ExposedUrl,
  context: BrowserContext,
  origin: string | undefined,
): Promise<string> {
  const site = new URL(url.replace(/^ws/, 'http'));
  const ancestors = origin === undefined ? [] : ancestorsOf(context, origin);
  const isSameSite = (domain: string) =>
    ancestors.length > 0 &&
    ancestors.every(({ protocol, hostname }) => {
      const isSubdomain = domain.startsWith('.') && `.${hostname}`.endsWith(domain);
      return protocol === site.protocol && (hostname === site.hostname || isSubdomain);
    });
  const cookies = await context.cookies(site.href).catch(() => []);
  const sent = cookies.filter(
    ({ sameSite, domain, partitionKey }) =>
      partitionKey === undefined && (sameSite === 'None' || isSameSite(domain)),
  );
  return sent.map(({ name, value }) => `${name}=${value}`).join('; ');
}

/** The URLs of all frames of an origin, and of those that contain them. */
function ancestorsOf(context: BrowserContext, origin: string): URL[] {
  const found: URL[] = [];
  for (const frame of context.pages().flatMap((page) => page.frames())) {
    if (!URL.canParse(frame.url()) || new URL(frame.url()).origin !== origin) continue;
    for (let one: Frame | null = frame; one; one = one.parentFrame()) {
      // The blank frames of a page have its origin.
      if (/^https?:/.test(one.url())) found.push(new URL(one.url()));
    }
  }
  return found;
}
