import type { BridgeInPage, PageChannel, Told } from './page-bridge.js';

/** A message of this process, which reads some bytes of a body. The page answers with them, in base64. */
export interface SliceMessage extends Told {
  readonly from: number;
  readonly to: number;
}

interface UploadValues {
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
    // Its id is a secret: only this process may read the body.
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
  /** Returns the stand-in of a body that is large. @param kept Receives what the page keeps. */
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
