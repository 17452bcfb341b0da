import type { Browser, BrowserContext, WebSocketRoute } from 'playwright-core';
import type { RawData, WebSocket } from 'ws';
import { onAbort } from '../../shared/abort.js';
import { loadWs } from '../../shared/lazy.js';

/** The network of this machine that the pages of a lease reach (option `exposeNetwork`), for their WebSockets. */
export interface ExposedWebSockets {
  /** Matches the URLs of the exposed hosts. */
  readonly pattern: RegExp;
  /** Accepts certificates that no known authority has signed, from now on. */
  acceptInsecureCerts(this: void): void;
  /** Opens a WebSocket from this machine. Rejects if the server refuses it. */
  open(this: void, request: UpstreamRequest): Promise<Upstream>;
}

/** A WebSocket that a page wants to open. */
export interface UpstreamRequest {
  readonly url: string;
  readonly protocols: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  /** Binary messages are buffers. */
  onMessage(this: void, message: string | Buffer): void;
  onClose(this: void, code: number, reason: string): void;
}

/** A WebSocket from this machine. */
export interface Upstream {
  send(message: string | Buffer): void;
  close(code?: number, reason?: string): void;
}

/** Opens a WebSocket from this machine, until the signal aborts. */
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
        close: (code, reason) => socket.close(isAllowed(code) ? code : GOING_AWAY, reason),
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
  const url = page.url();
  const site = url.replace(/^ws/, 'http');
  const open = async () => {
    const cookies = await context.cookies(site).catch(() => []);
    const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
    return exposed.open({
      url,
      protocols: page.protocols(),
      headers: { origin: originOf(context, new URL(site).origin), ...(cookie !== '' && { cookie }) },
      onMessage: (message) => page.send(message),
      onClose: (code, reason) => void page.close({ code, reason }),
    });
  };
  const opening = open();
  // What the page sends earlier waits for the server.
  const onceOpen = (use: (upstream: Upstream) => void) => void opening.then(use, () => {});
  page.onMessage((message) => onceOpen((upstream) => upstream.send(message)));
  page.onClose((code, reason) => onceOpen((upstream) => upstream.close(code, reason)));
  await opening.catch(() => page.close({ code: ABNORMAL }));
}

/** Playwright does not report which frame opens a WebSocket: a frame of the same origin, or the first one. */
function originOf(context: BrowserContext, own: string): string {
  const urls = context.pages().flatMap((page) => page.frames().map((frame) => frame.url()));
  const origins = urls.filter((url) => /^https?:/.test(url)).map((url) => new URL(url).origin);
  return origins.includes(own) ? own : (origins[0] ?? own);
}
