import type { OpenChannel } from './page-function.js';

/** A message of this process, which reads some bytes of a body. The page answers with them, in base64. */
export interface SliceMessage {
  readonly id: string;
  readonly from: number;
  readonly to: number;
}

interface UploadValues {
  /** Source of the regular expression of the URLs. */
  readonly pattern: string;
  /** What a stand-in begins with. The id and the size of what it stands for follow. */
  readonly mark: string;
  /** Bytes of the largest body that the browser passes to this process. */
  readonly most: number;
}

type Entries = Iterable<[string, FormDataEntryValue]>;

/**
 * Replaces large bodies of `fetch` and XMLHttpRequest to exposed hosts by stand-ins, in a page or a worker: the browser passes a body as one message,
 * and drops a message that is too large, so the page would wait for ever. Runs there, before the page's own scripts, and so uses
 * nothing of this module.
 */
// oxlint-disable-next-line max-lines-per-function -- only this function is there
export function replaceUploads(open: OpenChannel, name: string, { pattern, mark, most }: UploadValues): void {
  const { fetch, Request: NativeRequest, FormData: NativeForm, Blob: NativeBlob } = globalThis;
  type Encoded = Uint8Array & { toBase64?(): string };
  const kept = new Map<string, Blob>();
  /** Rejects if a file has changed. */
  const read = async ({ id, from, to }: SliceMessage) => {
    const bytes: Encoded = new Uint8Array(await kept.get(id)!.slice(from, to).arrayBuffer());
    return bytes.toBase64?.() ?? btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
  };
  const pass = open(name, read, () => {});
  if (!pass || typeof fetch !== 'function') return;
  const isExposed = new RegExp(pattern);
  const isForExposed = (given: unknown) => {
    try {
      return isExposed.test(new URL(String(given), globalThis.document?.baseURI ?? location.href).href);
    } catch {
      return false;
    }
  };

  const sizeOf = (body: unknown): number => {
    if (typeof body === 'string') return body.length;
    if (body instanceof NativeBlob) return body.size;
    if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return body.byteLength;
    if (!(body instanceof NativeForm)) return 0;
    return [...(body as unknown as Entries)].reduce((sum, [, value]) => sum + sizeOf(value), 0);
  };
  /** Its id is a secret: only this process may read the body. */
  const keep = (blob: Blob, ids: string[]) => {
    const id = crypto.getRandomValues(new Uint32Array(4)).join('-');
    ids.push(id);
    kept.set(id, blob);
    pass(id);
    return `${mark}${id} ${blob.size};`;
  };
  const shortBlob = (blob: Blob, ids: string[]) => new NativeBlob([keep(blob, ids)], { type: blob.type });
  const fill = (form: FormData, entries: Entries, ids: string[]) => {
    for (const [key, value] of entries)
      if (typeof value === 'string') form.append(key, value);
      else form.append(key, shortBlob(value, ids), value.name);
    return form;
  };
  /** Returns the stand-in of a body that is large. @param ids Receives those of what the page keeps. */
  const shorten = (body: unknown, ids: string[]) => {
    if (sizeOf(body) <= most) return body;
    if (body instanceof NativeBlob) return shortBlob(body, ids);
    if (body instanceof NativeForm) return fill(new NativeForm(), body, ids);
    const text = keep(new NativeBlob([body as BlobPart]), ids);
    // A text has a type of its own.
    return typeof body === 'string' ? text : new TextEncoder().encode(text);
  };
  const forget = (ids: readonly string[]) => {
    for (const id of ids) kept.delete(id);
  };

  const replace = (object: object, key: string, handler: ProxyHandler<never>) => {
    const before = Object.getOwnPropertyDescriptor(object, key) ?? {};
    Object.defineProperty(object, key, { ...before, value: new Proxy(before.value as never, handler) });
  };
  // Of a worker, its prototype has the function.
  let holder: object = globalThis;
  while (!Object.hasOwn(holder, 'fetch')) holder = Object.getPrototypeOf(holder) as object;
  replace(holder, 'fetch', {
    apply(target, self, parameters: [unknown, RequestInit?]) {
      const [input, init] = parameters;
      const request = input instanceof NativeRequest ? input : undefined;
      const isLarge = sizeOf(init?.body) > most;
      // The size of a body that is in a request can only be found by reading it.
      const isInside = request?.body && !init?.body && !request.bodyUsed && request.mode !== 'navigate';
      if ((!isLarge && !isInside) || !isForExposed(request?.url ?? input))
        return Reflect.apply(target, self, parameters);
      const ids: string[] = [];
      const send = async () => {
        const body = shorten(isInside ? await request.blob() : init?.body, ids) as BodyInit;
        const given = isInside ? [new NativeRequest(request, { body }), init] : [input, { ...init, body }];
        return Reflect.apply(target, self, given);
      };
      return send().finally(() => forget(ids));
    },
  });

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
      if (sizeOf(parameters[0]) <= most || !isForExposed(url)) return Reflect.apply(target, self, parameters);
      // The page waits, and can not be read.
      const advice = `exposeNetwork: a synchronous request can send at most ${most} bytes to an exposed host. Send it asynchronously.`;
      if (!isAsync) throw new DOMException(advice, 'NetworkError');
      const ids: string[] = [];
      self.addEventListener('loadend', () => forget(ids), { once: true });
      return Reflect.apply(target, self, [shorten(parameters[0], ids)]);
    },
  });
}
