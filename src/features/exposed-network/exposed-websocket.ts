import type { ClientRequest } from 'node:http';
import type { RawData, WebSocket } from 'ws';
import { onAbort } from '../../shared/abort.js';
import { isRecord, jsonOf } from '../../shared/json.js';
import { loadWs } from '../../shared/lazy.js';
import { routeTo, asBytes, pathOf, withoutUser } from './exposed-request.js';
import type { Context } from './context.js';
import type { Channel, ChannelKind } from './bridge.js';
import type { ExposedUrl } from './exposed-hosts.js';
import { MESSAGE_KIND, type ToPage } from './page-websocket.js';
import { cookiesFor, storeCookies } from './same-site.js';

/** Bytes that a page has not taken: above that, its server waits. */
const MOST_WAITING = 1024 * 1024;
/** Bytes that servers have not taken, of all pages together: a page can send without a pause. */
const MOST_UNSENT = 128 * 1024 * 1024;
/** Most WebSockets that are open, as in Chromium. */
const MOST_OPEN = 255;
/** What a page that is left sends to its server. */
const GOING_AWAY = 1001;
/** What a page sees if its WebSocket could not be opened, or was cut. */
const ABNORMAL = 1006;

const FAILED = { close: { code: ABNORMAL, reason: '', wasClean: false, isFailure: true } };

/**
 * The WebSockets of pages and workers to exposed hosts. A script replaces the class WebSocket there, and this process opens the
 * connections.
 */
export class ExposedWebSockets implements ChannelKind {
  readonly most = MOST_OPEN;
  readonly refusal = FAILED;
  readonly #context: Context;
  /** Those whose request was sent. */
  readonly #sockets = new Map<Channel, WebSocket>();
  /** Bytes that were handed to the network while the page is sent earlier ones. */
  readonly #sent = new Map<Channel, number>();

  constructor(context: Context) {
    this.#context = context;
  }

  opened(channel: Channel, content: string): void {
    const asked = recordOf(content);
    const url = this.#context.hosts.read(textOf(asked['url']) ?? '', 'websocket');
    // Those of pages that were left are closing.
    if (url === undefined || this.#sockets.size >= MOST_OPEN) return channel.end(FAILED);
    this.#context.onRequest(new URL(url).host);
    void this.#connect(channel, url, asked);
  }

  onMessage(channel: Channel, content: string): void {
    const [kind, rest] = [content.slice(0, 1), content.slice(1)];
    const socket = this.#sockets.get(channel);
    if (kind === MESSAGE_KIND.close) {
      const { code, reason } = recordOf(rest);
      if (!socket) return channel.end(FAILED);
      return close(socket, typeof code === 'number' ? code : undefined, textOf(reason));
    }
    if (!socket || socket.readyState !== socket.OPEN) return;
    const data = kind === MESSAGE_KIND.bytes ? Buffer.from(rest, 'base64') : rest;
    socket.send(data, () => void this.#acknowledge(channel, Buffer.byteLength(data)));
    let unsent = 0;
    for (const one of this.#sockets.values()) unsent += one.bufferedAmount;
    if (unsent > MOST_UNSENT) socket.terminate();
  }

  /** The document was left. */
  ended(channel: Channel): void {
    const socket = this.#sockets.get(channel);
    if (socket) close(socket, GOING_AWAY);
  }

  async #connect(channel: Channel, url: ExposedUrl, asked: Readonly<Record<string, unknown>>): Promise<void> {
    const { signal, sender } = this.#context;
    const { WebSocket: Client } = await loadWs();
    const headers = await this.#headersOf(channel, url);
    // The page was left, or has closed the WebSocket.
    if (signal.aborted || !channel.isOpen()) return;
    const protocols = listOf(asked['protocols']);
    const { origin, ...others } = headers;
    const options = { headers: others, origin, rejectUnauthorized: !sender.acceptsInsecureCerts };
    let socket: WebSocket;
    try {
      const server = withoutUser(url);
      // ws passes them on.
      const route: object = routeTo(server);
      const finishRequest = (request: ClientRequest) => {
        request.path = pathOf(server);
        if (protocols.length > 0) request.setHeader('Sec-WebSocket-Protocol', protocols.join(', '));
        request.end();
      };
      socket = new Client(server, protocols, { ...options, ...route, finishRequest });
    } catch {
      // A header of the page that no request may have.
      return channel.end(FAILED);
    }
    this.#sockets.set(channel, socket);
    const stopListening = onAbort(signal, () => socket.terminate());
    socket.on('close', stopListening);
    this.#report(channel, socket, url);
  }

  /** Passes what the server does on to the page. */
  #report(channel: Channel, socket: WebSocket, url: ExposedUrl): void {
    let waiting = 0;
    let isFailed = false;
    const send = (message: Omit<ToPage, 'id'>) => channel.send(message);
    let cookies: readonly string[] = [];
    socket.on('upgrade', ({ headers }) => (cookies = headers['set-cookie'] ?? []));
    const open = async () => {
      const { protocol, extensions } = socket;
      if (cookies.length > 0) {
        // The page can read them when its WebSocket is open, and receives no message before.
        socket.pause();
        await storeCookies(cookies, url, channel, this.#context);
      }
      void send({ open: { protocol, extensions } });
      socket.resume();
    };
    socket.on('open', () => void open());
    socket.on('message', (data: RawData, isBinary) => {
      const bytes = data as Buffer;
      waiting += bytes.length;
      if (waiting > MOST_WAITING) socket.pause();
      void send(isBinary ? { bytes: bytes.toString('base64') } : { text: String(bytes) }).then(() => {
        waiting -= bytes.length;
        if (waiting <= MOST_WAITING && socket.isPaused) socket.resume();
      });
    });
    socket.on('error', () => (isFailed = true));
    socket.on('close', (code, reason) => {
      this.#sockets.delete(channel);
      channel.end();
      const close = { code, reason: String(reason), wasClean: code !== ABNORMAL, isFailure: isFailed };
      void send({ close });
    });
  }

  /** A page can send any number of messages before it takes the answers. */
  async #acknowledge(channel: Channel, bytes: number): Promise<void> {
    const before = this.#sent.get(channel);
    this.#sent.set(channel, (before ?? 0) + bytes);
    if (before !== undefined) return;
    for (let sent = bytes; sent > 0; sent = this.#sent.get(channel)!) {
      this.#sent.set(channel, 0);
      await channel.send({ sent } satisfies Omit<ToPage, 'id'>);
    }
    this.#sent.delete(channel);
  }

  /** The headers that the browser would send. */
  async #headersOf({ session, place, page }: Channel, url: ExposedUrl): Promise<Record<string, string>> {
    const { clients, sender } = this.#context;
    const cookie = await cookiesFor(url, { session, place }, this.#context);
    const userAgent = clients.userAgentOf(page) ?? sender.userAgent;
    return {
      origin: place && /^https?:/.test(place.origin) ? place.origin : 'null',
      ...(userAgent !== undefined && { 'user-agent': userAgent }),
      'cache-control': 'no-cache',
      pragma: 'no-cache',
      ...sender.handshakeHeaders(new URL(url.replace(/^ws/, 'http'))),
      ...(cookie !== '' && { Cookie: asBytes(cookie) }),
      ...clients.headersOf(page),
    };
  }
}

function recordOf(json: string): Readonly<Record<string, unknown>> {
  const value = jsonOf(json);
  return isRecord(value) ? value : {};
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}

function close(socket: WebSocket, code: number | undefined, reason = ''): void {
  try {
    socket.close(code, reason);
  } catch {
    // A code or a reason that only a script that calls the function itself can send.
    socket.terminate();
  }
}
