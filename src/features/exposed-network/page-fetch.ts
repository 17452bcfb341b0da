import type { OpenChannel } from './page-function.js';

/**
 * What a message of the replaced `fetch` says: a request begins, or has its response; the page wants the next part of a response, or no
 * further one. The id follows, after a space, and the URL of a request that begins: text, because a page can replace what writes JSON.
 */
export type FetchMessage = 'begin' | 'over' | 'pull' | 'cancel';

/** A message of this process: what comes next of a response. */
export interface PartMessage {
  readonly id: string;
  /** In base64. */
  readonly bytes?: string;
  readonly isEnd?: boolean;
  readonly isError?: boolean;
}

interface FetchValues {
  /** Source of the regular expression of the URLs. */
  readonly pattern: string;
  /** Names the header of such a response, whose value is its id. */
  readonly header: string;
  /** Bytes that may wait until the page reads them. */
  readonly waiting: number;
}

/**
 * Replaces `fetch` in a page or a worker, for URLs of exposed hosts: the bodies of some responses arrive in parts, which no command of
 * CDP can deliver. Runs there, before the page's own scripts, and so uses nothing of this module.
 */
// oxlint-disable-next-line max-lines-per-function -- only this function is there
export function replaceFetch(
  open: OpenChannel,
  name: string,
  { pattern, header, waiting }: FetchValues,
): void {
  const native = globalThis.fetch;
  if (typeof native !== 'function') return;
  const pulls = new Map<string, (part: PartMessage) => void>();
  const receive = (part: PartMessage) => {
    const resolve = pulls.get(part.id);
    pulls.delete(part.id);
    resolve?.(part);
  };
  const pass = open(name, receive, () => {
    for (const id of pulls.keys()) receive({ id, isError: true });
  });
  if (!pass) return;
  const isExposed = new RegExp(pattern);
  const say = (what: FetchMessage, id: string, url = '') => pass(`${what} ${id} ${url}`);
  const { Request: NativeRequest, Response: NativeResponse, Headers: NativeHeaders } = globalThis;
  const NativeStream = globalThis.ReadableStream;
  const { prototype } = NativeResponse;
  const clone = prototype['clone'];
  const readText = prototype['text'];
  const READERS = ['arrayBuffer', 'blob', 'bytes', 'formData', 'json', 'text'] as const;
  const { parse } = JSON;
  interface Decoder {
    fromBase64?(text: string): Uint8Array<ArrayBuffer>;
  }
  const fromBase64 = (text: string) =>
    (Uint8Array as Decoder).fromBase64?.(text) ?? Uint8Array.from(atob(text), (char) => char.charCodeAt(0));

  const urlOf = (input: unknown): string | undefined => {
    try {
      const given = input instanceof NativeRequest ? input.url : input;
      if (typeof given !== 'string' && !(given instanceof URL)) return undefined;
      const url = new URL(given, globalThis.document?.baseURI ?? location.href);
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
      say('cancel', id);
    };
    const abort = () => {
      cancel();
      controller.error(signal?.reason);
    };
    const pull = async () => {
      const part = await new Promise<PartMessage>((resolve) => {
        pulls.set(id, resolve);
        say('pull', id);
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

  const define = (object: object, values: object) => {
    for (const [key, value] of Object.entries(values))
      // A page can give all objects a getter.
      Object.defineProperty(object, key, Object.assign(Object.create(null), { value, configurable: true }));
  };

  /** Gives a response of a constructor what only one of the network has. */
  const dress = (made: Response, like: Response, signal: AbortSignal | undefined): Response => {
    const { url, type, redirected, status, ok, statusText } = like;
    const read = (name: string, original: () => Promise<unknown>) => async () => {
      try {
        // The browser would read JSON while the stream is closed, and name that in an error.
        if (name !== 'json' || made.bodyUsed || made.body?.locked) return await original.call(made);
        return parse(await readText.call(made)) as unknown;
      } catch (error) {
        throw signal?.aborted ? signal.reason : error;
      }
    };
    const readers = READERS.flatMap((name) => {
      const original = prototype[name] as (() => Promise<unknown>) | undefined;
      return original ? [[name, read(name, original)] as const] : [];
    });
    const copy = () => dress(clone.call(made), like, signal);
    const facts = { url, type, redirected, clone: copy, ...Object.fromEntries(readers) };
    const unusual = made.status === status ? {} : { status, ok, statusText };
    define(made, { ...facts, ...unusual });
    for (const name of ['append', 'delete', 'set'])
      define(made.headers, {
        [name]: () => {
          throw new TypeError(`Failed to execute '${name}' on 'Headers': Headers are immutable`);
        },
      });
    return made;
  };

  const adopt = (response: Response, signal: AbortSignal | undefined): Response => {
    // A redirect can lead to another host.
    const id = isExposed.test(response.url) ? response.headers.get(header) : null;
    if (id === null) return response;
    const headers = new NativeHeaders(response.headers);
    headers.delete(header);
    const { status, statusText } = response;
    // The constructor refuses other statuses, which servers send.
    const usual = status < 600 ? { status, statusText } : {};
    const made = new NativeResponse(bodyOf(id, signal), { ...usual, headers });
    return dress(made, response, signal);
  };

  const replaced = new Proxy(native, {
    apply(target, self, parameters: [unknown, RequestInit?]) {
      const [request, options] = parameters;
      const ofRequest = request instanceof NativeRequest ? request : undefined;
      const url = urlOf(request);
      // The page can not read a response without CORS, and an aborted request has none.
      const isOpaque = (options?.mode ?? ofRequest?.mode) === 'no-cors';
      const signal = (options?.signal === undefined ? ofRequest?.signal : options.signal) ?? undefined;
      if (url === undefined || !isExposed.test(url) || isOpaque || signal?.aborted)
        return Reflect.apply(target, self, parameters) as Promise<Response>;
      const id = `${Math.random()}`;
      say('begin', id, url);
      const respond = async () => {
        try {
          return adopt(await (Reflect.apply(target, self, parameters) as Promise<Response>), signal);
        } finally {
          say('over', id);
        }
      };
      return respond();
    },
  });
  // Of a worker, its prototype has the function.
  let holder: object = globalThis;
  while (!Object.hasOwn(holder, 'fetch')) holder = Object.getPrototypeOf(holder) as object;
  Object.defineProperty(holder, 'fetch', {
    ...Object.getOwnPropertyDescriptor(holder, 'fetch'),
    value: replaced,
  });
}
