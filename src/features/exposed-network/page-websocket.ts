import type { BridgeInPage, PageChannel, ChannelMessage } from './page-bridge.js';

/** What a page says first of a WebSocket, as JSON. */
export interface WebSocketRequest {
  readonly url: string;
  readonly protocols: readonly string[];
}

/** What a page says next begins with one of these: a text, bytes in base64, or its end as JSON follow. */
export const MESSAGE_KIND = { text: 't', bytes: 'b', close: 'c' } as const;

/** A message of this process to the replaced WebSocket in a page. */
export interface ToPage extends ChannelMessage {
  readonly open?: { readonly protocol: string; readonly extensions: string };
  readonly text?: string;
  readonly bytes?: string;
  /** Number of bytes that were handed to the network. */
  readonly sent?: number;
  readonly close?: {
    readonly code: number;
    readonly reason: string;
    readonly wasClean: boolean;
    readonly isFailure: boolean;
  };
}

/**
 * Replaces the class WebSocket of a page or a worker, for URLs of exposed hosts: no interception of a browser sees WebSockets.
 * Runs there, before the page's own scripts, and so uses nothing of this module.
 */
// oxlint-disable-next-line max-lines-per-function -- only this function is there
export function replaceWebSocket(bridge: BridgeInPage, kinds: typeof MESSAGE_KIND): void {
  const Native = globalThis.WebSocket;
  if (typeof Native !== 'function') return;
  const FAILED = { code: 1006, reason: '', wasClean: false, isFailure: true };
  const encoder = new TextEncoder();

  /** Getters accept objects of another frame, too, but only objects of their own kind. */
  const getterOf = (prototype: object, name: string) => Object.getOwnPropertyDescriptor(prototype, name);
  const sizeOfBlob = getterOf(Blob.prototype, 'size');
  const sizeOfBuffer = getterOf(ArrayBuffer.prototype, 'byteLength');
  const isOf = (getter: PropertyDescriptor | undefined, data: unknown): boolean => {
    try {
      getter!.get!.call(data);
      return true;
    } catch {
      return false;
    }
  };

  /** A copy: the page may change its bytes. */
  const bytesOf = (data: unknown): Uint8Array<ArrayBuffer> | undefined => {
    if (ArrayBuffer.isView(data))
      return new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength).slice();
    return isOf(sizeOfBuffer, data) ? new Uint8Array(data as ArrayBuffer).slice() : undefined;
  };

  /** A browser refuses it in a document of HTTPS: nothing protects the connection, unless it stays on one machine. */
  const isMixed = ({ protocol, hostname }: URL) =>
    protocol === 'ws:' &&
    globalThis.origin.startsWith('https:') &&
    !/^(127\.[\d.]+|\[::1\]|(.+\.)?localhost)$/.test(hostname);

  class ExposedSocket extends EventTarget {
    readonly #channel: PageChannel;
    readonly #url: string;
    #state = 0;
    #protocol = '';
    #extensions = '';
    #binaryType: BinaryType = 'blob';
    #buffered = 0;
    /** Bytes of a Blob are read later, and messages keep their order. */
    #sending: Promise<unknown> | undefined;

    constructor(url: URL, protocols: readonly string[]) {
      super();
      this.#url = url.href;
      const request: WebSocketRequest = { url: url.href, protocols };
      const receive = (message: ToPage) => this.receive(message);
      this.#channel = bridge.open('socket', `${Math.random()}`, JSON.stringify(request), receive);
    }

    get url() {
      return this.#url;
    }
    get readyState() {
      return this.#state;
    }
    get protocol() {
      return this.#protocol;
    }
    get extensions() {
      return this.#extensions;
    }
    get bufferedAmount() {
      return this.#buffered;
    }
    get binaryType() {
      return this.#binaryType;
    }
    set binaryType(type) {
      if (type === 'blob' || type === 'arraybuffer') this.#binaryType = type;
    }

    send(data: unknown) {
      if (this.#state === 0)
        throw new DOMException(
          "Failed to execute 'send' on 'WebSocket': Still in CONNECTING state.",
          'InvalidStateError',
        );
      const blob = isOf(sizeOfBlob, data) ? (data as Blob) : undefined;
      const bytes = blob ? undefined : bytesOf(data);
      const text = blob || bytes ? undefined : String(data);
      this.#buffered += blob ? blob.size : (bytes?.length ?? encoder.encode(text).length);
      if (this.#state !== 1) return;
      const deliver = (content: Uint8Array | undefined) =>
        this.#channel.send(content ? kinds.bytes + bridge.toBase64(content) : kinds.text + text!);
      if (!blob && !this.#sending) return deliver(bytes);
      const before = this.#sending;
      const send = async () => {
        const content = blob ? new Uint8Array(await blob.arrayBuffer()) : bytes;
        await before;
        deliver(content);
        if (this.#sending === sending) this.#sending = undefined;
      };
      const sending = send();
      this.#sending = sending;
    }

    close(code?: number, reason?: string) {
      const fail = (text: string, type: string) => {
        throw new DOMException(`Failed to execute 'close' on 'WebSocket': ${text}`, type);
      };
      if (code !== undefined && code !== 1000 && !(code >= 3000 && code <= 4999))
        fail(
          `The close code must be either 1000, or between 3000 and 4999. ${code} is neither.`,
          'InvalidAccessError',
        );
      if (reason !== undefined && encoder.encode(reason).length > 123)
        fail('The close reason must not be greater than 123 UTF-8 bytes.', 'SyntaxError');
      if (this.#state > 1) return;
      this.#state = 2;
      const close = () => this.#channel.send(kinds.close + JSON.stringify({ code, reason }));
      if (this.#sending) void this.#sending.then(close);
      else close();
    }

    receive({ open, text, bytes, sent, isLost, close = isLost ? FAILED : undefined }: ToPage) {
      if (open && this.#state === 0) {
        this.#protocol = open.protocol;
        this.#extensions = open.extensions;
        this.#state = 1;
        this.dispatchEvent(new Event('open'));
      }
      if (text !== undefined || bytes !== undefined) {
        const content = bytes === undefined ? undefined : bridge.fromBase64(bytes);
        const data = content && (this.#binaryType === 'blob' ? new Blob([content]) : content.buffer);
        if (this.#state === 1)
          this.dispatchEvent(
            new MessageEvent<unknown>('message', { data: data ?? text, origin: new URL(this.#url).origin }),
          );
      }
      if (sent !== undefined) this.#buffered -= sent;
      if (!close || this.#state === 3) return;
      this.#state = 3;
      this.#channel.end();
      if (close.isFailure) this.dispatchEvent(new Event('error'));
      this.dispatchEvent(new CloseEvent('close', close));
    }
  }

  const { prototype } = ExposedSocket;
  for (const type of ['open', 'message', 'error', 'close']) {
    const handlers = new WeakMap<ExposedSocket, { handler: unknown; listener: EventListener }>();
    Object.defineProperty(prototype, `on${type}`, {
      get(this: ExposedSocket) {
        return handlers.get(this)?.handler ?? null;
      },
      set(this: ExposedSocket, handler: unknown) {
        const before = handlers.get(this);
        if (before) this.removeEventListener(type, before.listener);
        handlers.delete(this);
        if (typeof handler !== 'function') return;
        const listener = (event: Event) => (handler as EventListener).call(this, event);
        handlers.set(this, { handler, listener });
        this.addEventListener(type, listener);
      },
    });
  }
  // `instanceof WebSocket`, and the constants.
  Object.setPrototypeOf(prototype, Native.prototype);

  globalThis.WebSocket = new Proxy(Native, {
    construct(target, parameters: [(string | URL)?, (string | string[])?], newTarget) {
      const url = bridge.exposedUrlOf(parameters[0]);
      if (url) url.protocol = url.protocol.replace('http', 'ws');
      const protocols = [parameters[1] ?? []].flat().map(String);
      const areValid = protocols.every((one) => /^[\w!#$%&'*+.^`|~-]+$/.test(one));
      const isValid = parameters.length > 0 && areValid && new Set(protocols).size === protocols.length;
      // The browser's own class has the errors.
      if (!url || url.href.includes('#') || !isValid || isMixed(url))
        return Reflect.construct(target, parameters, newTarget) as WebSocket;
      return Reflect.construct(
        ExposedSocket,
        [url, protocols],
        newTarget === globalThis.WebSocket ? ExposedSocket : newTarget,
      );
    },
  });
}
