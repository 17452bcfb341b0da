/** A message of the replaced WebSocket in a page to this process. */
export interface FromPage {
  readonly id: string;
  /** Opens: the URL. */
  readonly url?: string;
  readonly protocols?: readonly string[];
  readonly userAgent?: string;
  /** Sends: a text, or bytes in base64. */
  readonly text?: string;
  readonly bytes?: string;
  /** Closes. */
  readonly close?: { readonly code?: number; readonly reason?: string };
}

/** A message of this process to the replaced WebSocket in a page. */
export interface ToPage {
  readonly id: string;
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
 *
 * @param pattern Source of the regular expression of the URLs.
 * @param name Name of the function that passes a message to this process, and of the one that receives those of this process.
 */
// oxlint-disable-next-line max-lines-per-function -- only this function is there
export function replaceWebSocket(pattern: string, name: string): void {
  type Passing = ((message: string) => void) & { lose?: () => void };
  const scope = globalThis as unknown as Record<string, Passing | undefined>;
  const pass = scope[name];
  // It runs again after this process has lost its connection.
  if (pass?.lose) return pass.lose();
  const Native = globalThis.WebSocket;
  if (!pass || typeof Native !== 'function') return;
  const isExposed = new RegExp(pattern);
  const sockets = new Map<string, ExposedSocket>();
  const encoder = new TextEncoder();
  const say = (message: FromPage) => pass(JSON.stringify(message));

  const toBase64 = (bytes: Uint8Array) => {
    let text = '';
    for (let at = 0; at < bytes.length; at += 0x80_00)
      text += String.fromCharCode(...bytes.subarray(at, at + 0x80_00));
    return btoa(text);
  };
  const fromBase64 = (text: string) => Uint8Array.from(atob(text), (char) => char.charCodeAt(0));

  /** Also of another frame: only their own getters accept them. */
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

  class ExposedSocket extends EventTarget {
    readonly #id = `${Math.random()}`;
    readonly #url: string;
    readonly #handlers = new Map<string, { readonly handler: unknown; readonly listener: EventListener }>();
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
      sockets.set(this.#id, this);
      say({ id: this.#id, url: url.href, protocols, userAgent: navigator.userAgent });
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
      const isBytes = isOf(sizeOfBuffer, data) || ArrayBuffer.isView(data);
      // A copy: the page may change its bytes.
      const bytes = isBytes
        ? new Uint8Array(ArrayBuffer.isView(data) ? data.buffer : (data as ArrayBuffer)).slice(
            ...(ArrayBuffer.isView(data) ? [data.byteOffset, data.byteOffset + data.byteLength] : []),
          )
        : undefined;
      const text = blob || isBytes ? undefined : String(data);
      this.#buffered += blob ? blob.size : (bytes?.length ?? encoder.encode(text).length);
      if (this.#state !== 1) return;
      const id = this.#id;
      const deliver = (content: Uint8Array | undefined) =>
        say(content ? { id, bytes: toBase64(content) } : { id, text: text! });
      if (!blob && !this.#sending) return deliver(bytes);
      const before = this.#sending;
      const sending = (async () => {
        const content = blob ? new Uint8Array(await blob.arrayBuffer()) : bytes;
        await before;
        deliver(content);
      })();
      this.#sending = sending;
      void sending.then(() => {
        if (this.#sending === sending) this.#sending = undefined;
      });
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
      const close = () => say({ id: this.#id, close: { code: code!, reason: reason! } });
      if (this.#sending) void this.#sending.then(close);
      else close();
    }

    receive({ open, text, bytes, sent, close }: ToPage) {
      if (open && this.#state === 0) {
        this.#protocol = open.protocol;
        this.#extensions = open.extensions;
        this.#state = 1;
        this.dispatchEvent(new Event('open'));
      }
      if (text !== undefined || bytes !== undefined) {
        const content = bytes === undefined ? undefined : fromBase64(bytes);
        const data = content && (this.#binaryType === 'blob' ? new Blob([content]) : content.buffer);
        if (this.#state === 1)
          this.dispatchEvent(
            new MessageEvent<unknown>('message', { data: data ?? text, origin: new URL(this.#url).origin }),
          );
      }
      if (sent !== undefined) this.#buffered -= sent;
      if (!close || this.#state === 3) return;
      this.#state = 3;
      sockets.delete(this.#id);
      if (close.isFailure) this.dispatchEvent(new Event('error'));
      this.dispatchEvent(new CloseEvent('close', close));
    }

    /** Of `onopen` and the others. */
    handler(type: string) {
      return this.#handlers.get(type)?.handler ?? null;
    }
    setHandler(type: string, handler: unknown) {
      const before = this.#handlers.get(type);
      if (before) this.removeEventListener(type, before.listener);
      this.#handlers.delete(type);
      if (typeof handler !== 'function') return;
      const listener = (event: Event) => (handler as EventListener).call(this, event);
      this.#handlers.set(type, { handler, listener });
      this.addEventListener(type, listener);
    }
  }

  const { prototype } = ExposedSocket;
  for (const type of ['open', 'message', 'error', 'close'])
    Object.defineProperty(prototype, `on${type}`, {
      get(this: ExposedSocket) {
        return this.handler(type);
      },
      set(this: ExposedSocket, handler: unknown) {
        this.setHandler(type, handler);
      },
    });
  // `instanceof WebSocket`, and the constants.
  Object.setPrototypeOf(prototype, Native.prototype);

  globalThis.WebSocket = new Proxy(Native, {
    construct(target, parameters: [(string | URL)?, (string | string[])?], newTarget) {
      let url: URL | undefined;
      try {
        url = new URL(parameters[0]!, globalThis.document?.baseURI ?? location.href);
        url.protocol = url.protocol.replace('http', 'ws');
      } catch {
        // It is not valid.
      }
      const protocols = [parameters[1] ?? []].flat().map(String);
      const areValid = protocols.every((one) => /^[\w!#$%&'*+.^`|~-]+$/.test(one));
      const isValid = parameters.length > 0 && areValid && new Set(protocols).size === protocols.length;
      // The browser's own class has the errors.
      if (!url || url.href.includes('#') || !isValid || !isExposed.test(url.href))
        return Reflect.construct(target, parameters, newTarget) as WebSocket;
      return Reflect.construct(
        ExposedSocket,
        [url, protocols],
        newTarget === globalThis.WebSocket ? ExposedSocket : newTarget,
      );
    },
  });
  const receive: Passing = (message) => {
    const read = message as unknown as ToPage;
    sockets.get(read.id)?.receive(read);
  };
  receive.lose = () => {
    const close = { code: 1006, reason: '', wasClean: false, isFailure: true };
    for (const [id, socket] of sockets) socket.receive({ id, close });
  };
  // Not writable: a later connection adds its function again.
  const how = { writable: false, enumerable: false, configurable: true };
  Object.defineProperty(globalThis, name, { value: receive, ...how });
}
