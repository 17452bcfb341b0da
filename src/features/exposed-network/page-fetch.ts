/** A message of the replaced `fetch` in a page to this process. */
export interface FetchMessage {
  readonly id: string;
  /** A request begins: its URL. */
  readonly url?: string;
  /** A request has its response, or has failed. */
  readonly isOver?: boolean;
  /** The page wants the next part of a response. */
  readonly isPull?: boolean;
  /** The page does not want the rest of a response. */
  readonly isCancel?: boolean;
}

/** A message of this process: what comes next of a response. */
export interface PartMessage {
  readonly id: string;
  /** In base64. */
  readonly bytes?: string;
  readonly isEnd?: boolean;
  readonly isError?: boolean;
}

/**
 * Replaces `fetch` in a page or a worker, for URLs of exposed hosts: the bodies of some responses arrive in parts, which no command of
 * CDP can deliver. Runs there, before the page's own scripts, and so uses nothing of this module.
 *
 * @param pattern Source of the regular expression of the URLs.
 * @param name Name of the function that passes a message to this process, and of the one that receives those of this process.
 * @param header Names the header of such a response, whose value is its id.
 * @param waiting Bytes that may wait until the page reads them.
 */
// oxlint-disable-next-line max-lines-per-function -- only this function is there
export function replaceFetch(pattern: string, name: string, header: string, waiting: number): void {
  type Passing = ((message: string) => void) & { isReplaced?: boolean };
  const scope = globalThis as unknown as Record<string, Passing | undefined>;
  const pass = scope[name];
  const native = globalThis.fetch;
  if (!pass || pass.isReplaced || typeof native !== 'function') return;
  const isExposed = new RegExp(pattern);
  const say = (message: FetchMessage) => pass(JSON.stringify(message));
  const pulls = new Map<string, (part: PartMessage) => void>();
  const { Response: NativeResponse, Headers: NativeHeaders, ReadableStream: NativeStream } = globalThis;
  const { prototype } = NativeResponse;
  const clone = prototype['clone'];
  const READERS = ['arrayBuffer', 'blob', 'bytes', 'formData', 'json', 'text'] as const;
  interface Decoder {
    fromBase64?(text: string): Uint8Array<ArrayBuffer>;
  }
  const fromBase64 = (text: string) =>
    (Uint8Array as Decoder).fromBase64?.(text) ?? Uint8Array.from(atob(text), (char) => char.charCodeAt(0));

  const urlOf = (input: unknown): string | undefined => {
    try {
      if (input instanceof Request) return input.url;
      if (typeof input !== 'string' && !(input instanceof URL)) return undefined;
      const url = new URL(input, globalThis.document?.baseURI ?? location.href);
      url.hash = '';
      return url.href;
    } catch {
      return undefined;
    }
  };

  const bodyOf = (id: string, signal: AbortSignal | undefined) => {
    const end = () => {
      pulls.delete(id);
      signal?.removeEventListener('abort', abort);
    };
    let controller: ReadableByteStreamController;
    const cancel = () => {
      end();
      say({ id, isCancel: true });
    };
    const abort = () => {
      cancel();
      controller.error(signal?.reason);
    };
    const pull = async () => {
      const part = await new Promise<PartMessage>((resolve) => {
        pulls.set(id, resolve);
        say({ id, isPull: true });
      });
      if (part.bytes !== undefined) return controller.enqueue(fromBase64(part.bytes));
      end();
      if (part.isError) return controller.error(new TypeError('network error'));
      controller.close();
      // Who reads into a buffer of its own waits for an answer.
      controller.byobRequest?.respond(0);
    };
    const start = (one: ReadableByteStreamController) => {
      controller = one;
      if (signal?.aborted) abort();
      else signal?.addEventListener('abort', abort);
    };
    return new NativeStream({ type: 'bytes', start, pull, cancel }, { highWaterMark: waiting });
  };

  /** Gives a response of a constructor what only one of the network has. */
  const dress = (made: Response, like: Response, signal: AbortSignal | undefined): Response => {
    const { url, type, redirected } = like;
    const read = (original: () => Promise<unknown>) => () =>
      original.call(made).catch((error: unknown) => {
        throw signal?.aborted ? signal.reason : error;
      });
    const readers = READERS.flatMap((name) => {
      const original = prototype[name] as (() => Promise<unknown>) | undefined;
      return original ? [[name, read(original)] as const] : [];
    });
    const copy = () => dress(clone.call(made), like, signal);
    const facts = { url, type, redirected, clone: copy, ...Object.fromEntries(readers) };
    for (const [key, value] of Object.entries(facts))
      Object.defineProperty(made, key, { value, configurable: true });
    return made;
  };

  const adopt = (response: Response, signal: AbortSignal | undefined): Response => {
    const id = response.headers.get(header);
    if (id === null) return response;
    const headers = new NativeHeaders(response.headers);
    headers.delete(header);
    const { status, statusText } = response;
    const made = new NativeResponse(bodyOf(id, signal), { status, statusText, headers });
    return dress(made, response, signal);
  };

  const replaced = new Proxy(native, {
    apply(target, self, parameters: [unknown, RequestInit?]) {
      const [request, options] = parameters;
      const ofRequest = request instanceof Request ? request : undefined;
      const url = urlOf(request);
      // The page can not read a response without CORS, and an aborted request has none.
      const isOpaque = (options?.mode ?? ofRequest?.mode) === 'no-cors';
      const signal = options?.signal === undefined ? ofRequest?.signal : options.signal;
      if (url === undefined || !isExposed.test(url) || isOpaque || signal?.aborted)
        return Reflect.apply(target, self, parameters) as Promise<Response>;
      const id = `${Math.random()}`;
      say({ id, url });
      const responding = Reflect.apply(target, self, parameters) as Promise<Response>;
      return responding.then(
        (response) => {
          say({ id, isOver: true });
          return adopt(response, signal ?? undefined);
        },
        (error: unknown) => {
          say({ id, isOver: true });
          throw error;
        },
      );
    },
  });
  // Of a worker, its prototype has the function.
  let holder: object = globalThis;
  while (!Object.hasOwn(holder, 'fetch')) holder = Object.getPrototypeOf(holder) as object;
  Object.defineProperty(holder, 'fetch', {
    ...Object.getOwnPropertyDescriptor(holder, 'fetch'),
    value: replaced,
  });
  const receive: Passing = (message) => {
    const part = message as unknown as PartMessage;
    const resolve = pulls.get(part.id);
    pulls.delete(part.id);
    resolve?.(part);
  };
  receive.isReplaced = true;
  Object.defineProperty(globalThis, name, { value: receive, enumerable: false, configurable: true });
}
