import type { BridgeInPage, Told } from './page-bridge.js';

/** A message of this process: what comes next of a response. */
export interface PartMessage extends Told {
  /** In base64. */
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
        channel.say('');
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
      if (url === undefined || isOpaque || signal?.aborted) return send();
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
