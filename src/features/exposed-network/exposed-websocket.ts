import type { RawData, WebSocket } from 'ws';
import type { EventParams } from '../../wire/message.js';
import { onAbort } from '../../shared/abort.js';
import { isRecord, jsonOf } from '../../shared/json.js';
import { loadWs } from '../../shared/lazy.js';
import { routeTo } from './connections.js';
import type { Context } from './context.js';
import type { ExposedHosts, ExposedUrl } from './exposed-hosts.js';
import { asBytes } from './exposed-request.js';
import { PageFunction, prefixOf, scriptOf, type Caller } from './page-function.js';
import { replaceWebSocket, type ToPage } from './page-websocket.js';
import { cookiesFor } from './same-site.js';
import { pageOf } from './targets.js';

/** The name in pages of the function through which their WebSockets reach this process. */
const NAME = '__exposedWebSocket';
/** Bytes that a page has not taken: above that, its server waits. */
const MOST_WAITING = 1024 * 1024;
/** Bytes that servers have not taken, of all pages together: a page can send without a pause. */
const MOST_UNSENT = 128 * 1024 * 1024;
/** As in Chromium. */
const MOST_OPEN = 255;
/** What a page that is left sends to its server. */
const GOING_AWAY = 1001;
/** What a page sees if its WebSocket could not be opened, or was cut. */
const ABNORMAL = 1006;

/** What a script of a page says. Any script can say anything: it is read as untrusted. */
interface Said extends Caller {
  readonly id: string;
  /** Of its WebSocket. */
  readonly key: string;
  readonly message: Readonly<Record<string, unknown>>;
}

/** The script that replaces the class in pages and workers. */
export function webSocketScript({ pattern }: ExposedHosts): string {
  return scriptOf(replaceWebSocket, NAME, pattern.source);
}

/**
 * The WebSockets of pages and workers to exposed hosts. A script replaces the class WebSocket there, and this process opens the
 * connections.
 */
export class ExposedWebSockets {
  readonly #context: Context;
  /** The function through which the WebSockets of pages reach this process. */
  readonly function: PageFunction;
  /** By place and id. Undefined until the request is sent. */
  readonly #open = new Map<string, WebSocket | undefined>();
  /** Bytes that were handed to the network while the page is told of earlier ones. */
  readonly #sent = new Map<string, number>();

  constructor(context: Context) {
    this.#context = context;
    this.function = new PageFunction(NAME, context);
  }

  /** A script has called a function. */
  receive(call: EventParams<'Runtime.bindingCalled'>, sessionId = ''): void {
    const caller = this.function.callerOf(call, sessionId);
    const message = caller && jsonOf(call.payload);
    if (!caller || !isRecord(message) || typeof message['id'] !== 'string') return;
    const { id, url } = message;
    const said = { ...caller, id, message, key: `${caller.place} ${id}` };
    if (typeof url === 'string') void this.#join(said, url);
    else if (this.#open.has(said.key)) this.#pass(said);
  }

  /** The documents of a session, or that of one JavaScript context, were left. */
  leave(sessionId: string, contextId?: number): void {
    const prefix = prefixOf(sessionId, contextId);
    for (const [key, socket] of this.#open) {
      if (!key.startsWith(prefix)) continue;
      if (socket) close(socket, GOING_AWAY);
      else this.#open.delete(key);
    }
  }

  async #join(said: Said, text: string): Promise<void> {
    const { hosts, signal, onRequest, sender } = this.#context;
    const url = hosts.read(text, 'websocket');
    const { key } = said;
    if (this.#open.has(key)) return;
    if (url === undefined || this.#open.size >= MOST_OPEN) return this.#refuse(said);
    // Before the headers are known: a script can call the function many times at once.
    this.#open.set(key, undefined);
    onRequest(new URL(url).host);
    const { WebSocket: Client } = await loadWs();
    const headers = await this.#headersOf(said, url);
    // The page was left, or has closed the WebSocket.
    if (signal.aborted || !this.#open.has(key)) return;
    const protocols = listOf(said.message['protocols']);
    const { origin, ...others } = headers;
    const options = { headers: others, origin, rejectUnauthorized: !sender.acceptsInsecureCerts };
    let socket: WebSocket;
    try {
      // ws passes them on.
      const route: object = routeTo(new URL(url));
      socket = new Client(url, protocols, { ...options, ...route });
    } catch {
      // A header of the page that no request may have.
      this.#open.delete(key);
      return this.#refuse(said);
    }
    this.#open.set(key, socket);
    const stopListening = onAbort(signal, () => socket.terminate());
    socket.on('close', stopListening);
    this.#report(said, socket);
  }

  /** Passes what the server does on to the page. */
  #report(said: Said, socket: WebSocket): void {
    let waiting = 0;
    let isFailed = false;
    const tell = (message: Omit<ToPage, 'id'>) => this.function.tell(said, { id: said.id, ...message });
    socket.on(
      'open',
      () => void tell({ open: { protocol: socket.protocol, extensions: socket.extensions } }),
    );
    socket.on('message', (data: RawData, isBinary) => {
      const bytes = data as Buffer;
      waiting += bytes.length;
      if (waiting > MOST_WAITING) socket.pause();
      void tell(isBinary ? { bytes: bytes.toString('base64') } : { text: String(bytes) }).then(() => {
        waiting -= bytes.length;
        if (waiting <= MOST_WAITING && socket.isPaused) socket.resume();
      });
    });
    socket.on('error', () => (isFailed = true));
    socket.on('close', (code, reason) => {
      this.#open.delete(said.key);
      const close = { code, reason: String(reason), wasClean: code !== ABNORMAL, isFailure: isFailed };
      void tell({ close });
    });
  }

  #pass(said: Said): void {
    const { key, message } = said;
    const { text, bytes, close: closing } = message;
    const socket = this.#open.get(key);
    if (isRecord(closing)) {
      const { code, reason } = closing;
      if (socket) return close(socket, typeof code === 'number' ? code : undefined, String(reason ?? ''));
      this.#open.delete(key);
      return void this.#refuse(said);
    }
    if (!socket || socket.readyState !== socket.OPEN) return;
    const data = typeof bytes === 'string' ? Buffer.from(bytes, 'base64') : String(text);
    socket.send(data, () => void this.#acknowledge(said, Buffer.byteLength(data)));
    let unsent = 0;
    for (const one of this.#open.values()) unsent += one?.bufferedAmount ?? 0;
    if (unsent > MOST_UNSENT) socket.terminate();
  }

  /** A page can send any number of messages before it takes the answers. */
  async #acknowledge(said: Said, bytes: number): Promise<void> {
    const { id, key } = said;
    const before = this.#sent.get(key);
    this.#sent.set(key, (before ?? 0) + bytes);
    if (before !== undefined) return;
    for (let sent = bytes; sent > 0; sent = this.#sent.get(key)!) {
      this.#sent.set(key, 0);
      await this.function.tell(said, { id, sent });
    }
    this.#sent.delete(key);
  }

  #refuse(said: Said): Promise<void> {
    return this.function.refuse(said, { id: said.id, close: FAILED });
  }

  /** The headers that the browser would send. */
  async #headersOf({ message, target, contextId }: Said, url: ExposedUrl): Promise<Record<string, string>> {
    const place = target.places.get(contextId);
    const { userAgent } = message;
    const web = place && /^https?:/.test(place.origin) ? place : undefined;
    const cookie = await cookiesFor(url, target, web, this.#context);
    return {
      origin: web?.origin ?? 'null',
      ...(typeof userAgent === 'string' && { 'user-agent': userAgent }),
      'cache-control': 'no-cache',
      pragma: 'no-cache',
      ...this.#context.sender.handshakeHeaders(new URL(url.replace(/^ws/, 'http'))),
      ...(cookie !== '' && { cookie: asBytes(cookie) }),
      ...this.#context.clients.headersOf(pageOf(target).targetId),
    };
  }
}

const FAILED = { code: ABNORMAL, reason: '', wasClean: false, isFailure: true };

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
