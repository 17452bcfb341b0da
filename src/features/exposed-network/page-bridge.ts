/** A message of this process to a channel of a page. */
export interface ChannelMessage {
  readonly id: string;
  /** This process has lost its connection, or has no such channel. */
  readonly isLost?: boolean;
}

/** The end of a channel in a page. */
export interface PageChannel {
  send(content: string): void;
  end(): void;
}

/** What the scripts of ours in a page, or a worker, have in common. */
export interface BridgeInPage {
  /** Frames are text, because a page can replace what writes JSON. @param id A secret of the page: only it may use the channel. */
  open(kind: string, id: string, content: string, receive: (message: never) => unknown): PageChannel;
  /** Returns the URL that a value means in this page; undefined if it means none, or one of another host. */
  exposedUrlOf(given: unknown): URL | undefined;
  toBase64(bytes: Uint8Array): string;
  fromBase64(text: string): Uint8Array<ArrayBuffer>;
  /** Puts a function with a handler in place of `fetch`. */
  replaceFetch(handler: ProxyHandler<typeof fetch>): void;
}

/** Something that a script of ours replaces in a page or a worker. It runs there, and so uses nothing of its module. */
export type Replacement<Values> = (bridge: BridgeInPage, values: Values) => void;

/**
 * Opens the bridge in a page or a worker, before its own scripts. It runs there, and so uses nothing of this module.
 *
 * @param pattern Source of the regular expression of the exposed URLs.
 * @returns Undefined if there is no binding, or the bridge is open.
 */
// oxlint-disable-next-line max-lines-per-function -- only this function is there
export function openBridge(name: string, pattern: string): BridgeInPage | undefined {
  type Binding = ((message: string) => void) & { lose?: () => void };
  const pass = (globalThis as unknown as Record<string, Binding | undefined>)[name];
  // This process has a new connection.
  pass?.lose?.();
  if (!pass || pass.lose) return undefined;
  const open = new Map<string, (message: never) => unknown>();
  const receive = (message: ChannelMessage) => open.get(message.id)?.(message as never);
  const lose = () => open.forEach((_receive, id) => receive({ id, isLost: true }));
  // It was left: this process has ended its channels.
  globalThis.addEventListener('pageshow', ({ persisted }) => persisted && lose());
  // It is not writable, because a later connection adds its binding again.
  const how = { writable: false, enumerable: false, configurable: true };
  Object.defineProperty(globalThis, name, { value: Object.assign(receive, { lose }), ...how });
  const exposed = new RegExp(pattern);
  interface Coder {
    fromBase64?(text: string): Uint8Array<ArrayBuffer>;
  }
  return {
    open(kind, id, content, onMessage) {
      open.set(id, onMessage);
      pass(`open ${id} ${kind} ${content}`);
      return {
        send: (text) => pass(`send ${id} ${text}`),
        end: () => {
          if (open.delete(id)) pass(`end ${id} `);
        },
      };
    },
    exposedUrlOf(given) {
      try {
        const url = new URL(String(given), globalThis.document?.baseURI ?? location.href);
        return exposed.test(url.href) ? url : undefined;
      } catch {
        return undefined;
      }
    },
    toBase64(bytes: Uint8Array & { toBase64?(): string }) {
      if (bytes.toBase64) return bytes.toBase64();
      let text = '';
      for (let at = 0; at < bytes.length; at += 0x80_00)
        text += String.fromCharCode(...bytes.subarray(at, at + 0x80_00));
      return btoa(text);
    },
    fromBase64: (text) =>
      (Uint8Array as Coder).fromBase64?.(text) ?? Uint8Array.from(atob(text), (char) => char.charCodeAt(0)),
    replaceFetch(handler) {
      // In a worker, the prototype of the global has the function.
      let holder: object = globalThis;
      while (!Object.hasOwn(holder, 'fetch')) holder = Object.getPrototypeOf(holder) as object;
      const before = Object.getOwnPropertyDescriptor(holder, 'fetch')!;
      Object.defineProperty(holder, 'fetch', {
        ...before,
        value: new Proxy(before.value as typeof fetch, handler),
      });
    },
  };
}
