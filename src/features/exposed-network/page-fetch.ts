import type { BridgeInPage, PageChannel, ChannelMessage } from './page-bridge.js';

/** A message of this process: what comes next of a response. */
export interface PartMessage extends ChannelMessage {
  /** The bytes, in base64. */
  readonly bytes?: string;
  readonly isEnd?: boolean;
  readonly isError?: boolean;
}

interface FetchValues {
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
export function replaceFetch(bridge: BridgeInPage, { header, waiting }: FetchValues): void {
  if (typeof globalThis.fetch !== 'function') return;
  const { Request: NativeRequest, Response: NativeResponse, Headers: NativeHeaders } = globalThis;
  const NativeStream = globalThis.ReadableStream;
  const { prototype } = NativeResponse;
  const clone = prototype['clone'];
  const readText = prototype['text'];
  const READERS = ['arrayBuffer', 'blob', 'bytes', 'formData', 'json', 'text'] as const;
  const { parse } = JSON;

  const urlOf = (input: unknown): string | undefined => {
    const given = input instanceof NativeRequest ? input.url : input;
    if (typeof given !== 'string' && !(given instanceof URL)) return undefined;
    const url = bridge.exposedUrlOf(given);
    if (url) url.hash = '';
    return url?.href;
  };

  const bodyOf = (id: string, signal: AbortSignal | undefined) => {
    let controller: ReadableByteStreamController;
    let receive = (_part: PartMessage) => {};
    const end = () => {
      channel.end();
      signal?.removeEventListener('abort', abort);
    };
    const abort = () => {
      end();
      controller.error(signal?.reason);
    };
    const pull = async () => {
      const part = await new Promise<PartMessage>((resolve) => {
        receive = resolve;
        channel.send('');
      });
      if (part.bytes !== undefined) return controller.enqueue(bridge.fromBase64(part.bytes));
      end();
      if (part.isEnd !== true) return controller.error(new TypeError('network error'));
      controller.close();
      // Who reads into a buffer of its own waits for an answer.
      controller.byobRequest?.respond(0);
    };
    const channel = bridge.open('body', id, '', (part: PartMessage) => receive(part));
    const start = (one: ReadableByteStreamController) => {
      controller = one;
      if (signal?.aborted) abort();
      else signal?.addEventListener('abort', abort);
    };
    return new NativeStream({ type: 'bytes', start, pull, cancel: end }, { highWaterMark: waiting });
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
    const id = bridge.exposedUrlOf(response.url) ? response.headers.get(header) : null;
    if (id === null) return response;
    const headers = new NativeHeaders(response.headers);
    headers.delete(header);
    const { status, statusText } = response;
    // The constructor refuses other statuses, which servers send.
    const usual = status < 600 ? { status, statusText } : {};
    const made = new NativeResponse(bodyOf(id, signal), { ...usual, headers });
    return dress(made, response, signal);
  };

  bridge.replaceFetch({
    apply(target, self, parameters: [unknown, RequestInit?]) {
      const [request, options] = parameters;
      const ofRequest = request instanceof NativeRequest ? request : undefined;
      const url = urlOf(request);
      // The page can not read a response without CORS, and an aborted request has none.
      const isOpaque = (options?.mode ?? ofRequest?.mode) === 'no-cors';
      const signal = (options?.signal === undefined ? ofRequest?.signal : options.signal) ?? undefined;
      const send = () => Reflect.apply(target, self, parameters) as Promise<Response>;
      const of = (name: 'cache' | 'integrity' | 'mode') => options?.[name] ?? ofRequest?.[name];
      // The browser has no response of an exposed host in its cache, and the interception would send the request.
      if (url !== undefined && of('cache') === 'only-if-cached' && of('mode') === 'same-origin')
        return Promise.reject(new TypeError('Failed to fetch'));
      // The browser checks the integrity of a whole body only.
      if (url === undefined || isOpaque || signal?.aborted || of('integrity')) return send();
      const channel = bridge.open('fetch', `${Math.random()}`, url, () => {});
      const respond = async () => {
        try {
          return adopt(await send(), signal);
        } finally {
          channel.end();
        }
      };
      return respond();
    },
  });
}

/** A message of this process, which reads some bytes of a body. The page answers with them, in base64. */
export interface SliceMessage extends ChannelMessage {
  readonly from: number;
  readonly to: number;
}

interface UploadValues {
  /** What a placeholder begins with. The id and the size of what it stands for follow. */
  readonly mark: string;
  /** Bytes of the largest body that the browser passes to this process. */
  readonly most: number;
}

type Entries = Iterable<[string, FormDataEntryValue]>;

/**
 * Replaces large bodies of `fetch` and XMLHttpRequest to exposed hosts by placeholders, in a page or a worker: the browser passes a body as one message,
 * and drops a message that is too large, so the page would wait for ever. Runs there, before the page's own scripts, and so uses
 * nothing of this module.
 */
// oxlint-disable-next-line max-lines-per-function -- only this function is there
export function replaceUploads(bridge: BridgeInPage, { mark, most }: UploadValues): void {
  const { fetch, Request: NativeRequest, FormData: NativeForm, Blob: NativeBlob } = globalThis;
  if (typeof fetch !== 'function') return;

  const sizeOf = (body: unknown): number => {
    if (typeof body === 'string') return body.length;
    if (body instanceof NativeBlob) return body.size;
    if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return body.byteLength;
    if (!(body instanceof NativeForm)) return 0;
    return [...(body as unknown as Entries)].reduce((sum, [, value]) => sum + sizeOf(value), 0);
  };
  const keep = (blob: Blob, kept: PageChannel[]) => {
    // The id of a body is a secret: only this process may read it.
    const id = crypto.getRandomValues(new Uint32Array(4)).join('-');
    /** Rejects if a file has changed. */
    const read = async ({ from, to, isLost }: SliceMessage) =>
      isLost ? '' : bridge.toBase64(new Uint8Array(await blob.slice(from, to).arrayBuffer()));
    kept.push(bridge.open('upload', id, '', read));
    return `${mark}${id} ${blob.size};`;
  };
  const shortBlob = (blob: Blob, kept: PageChannel[]) =>
    new NativeBlob([keep(blob, kept)], { type: blob.type });
  const fill = (form: FormData, entries: Entries, kept: PageChannel[]) => {
    for (const [key, value] of entries)
      if (typeof value === 'string') form.append(key, value);
      else form.append(key, shortBlob(value, kept), value.name);
    return form;
  };
  /** Returns the placeholder of a body that is large. @param kept Receives what the page keeps. */
  const shorten = (body: unknown, kept: PageChannel[]) => {
    if (sizeOf(body) <= most) return body;
    if (body instanceof NativeBlob) return shortBlob(body, kept);
    if (body instanceof NativeForm) return fill(new NativeForm(), body, kept);
    const text = keep(new NativeBlob([body as BlobPart]), kept);
    // A text has a type of its own.
    return typeof body === 'string' ? text : new TextEncoder().encode(text);
  };
  const forget = (kept: readonly PageChannel[]) => kept.forEach((one) => one.end());

  bridge.replaceFetch({
    apply(target, self, parameters: [unknown, RequestInit?]) {
      const [input, init] = parameters;
      const request = input instanceof NativeRequest ? input : undefined;
      const isLarge = sizeOf(init?.body) > most;
      // The size of a body that is in a request can only be found by reading it.
      const isInside = request?.body && !init?.body && !request.bodyUsed && request.mode !== 'navigate';
      if ((!isLarge && !isInside) || !bridge.exposedUrlOf(request?.url ?? input))
        return Reflect.apply(target, self, parameters);
      const kept: PageChannel[] = [];
      const send = async () => {
        const body = shorten(isInside ? await request.blob() : init?.body, kept) as BodyInit;
        const given = isInside ? [new NativeRequest(request, { body }), init] : [input, { ...init, body }];
        return Reflect.apply(target, self, given);
      };
      return send().finally(() => forget(kept));
    },
  });

  const replace = (object: object, key: string, handler: ProxyHandler<never>) => {
    const before = Object.getOwnPropertyDescriptor(object, key) ?? {};
    Object.defineProperty(object, key, { ...before, value: new Proxy(before.value as never, handler) });
  };
  const xhr = (globalThis as Partial<typeof globalThis>).XMLHttpRequest?.prototype;
  if (!xhr) return;
  const opened = new WeakMap<object, readonly unknown[]>();
  replace(xhr, 'open', {
    apply(target, self: XMLHttpRequest, parameters) {
      opened.set(self, parameters);
      return Reflect.apply(target, self, parameters);
    },
  });
  replace(xhr, 'send', {
    apply(target, self: XMLHttpRequest, parameters: unknown[]) {
      const [, url, isAsync = true] = opened.get(self) ?? [];
      if (sizeOf(parameters[0]) <= most || !bridge.exposedUrlOf(url))
        return Reflect.apply(target, self, parameters);
      // The page waits, and can not be read.
      const advice = `exposeNetwork: a synchronous request can send at most ${most} bytes to an exposed host. Send it asynchronously.`;
      if (!isAsync) throw new DOMException(advice, 'NetworkError');
      const kept: PageChannel[] = [];
      self.addEventListener('loadend', () => forget(kept), { once: true });
      return Reflect.apply(target, self, [shorten(parameters[0], kept)]);
    },
  });
}
