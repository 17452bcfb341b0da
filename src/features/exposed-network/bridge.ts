import type { CdpClient } from '../../wire/cdp-client.js';
import type { EventParams, Session } from '../../wire/layer.js';
import { pageOf, type Place, type Targets } from './targets.js';

/** The name of the binding in pages and workers. Our script puts its own function in its place. */
export const NAME = '__exposedNetwork';
/** What a frame of a page begins with: `open` with the id and the kind of a channel, `send` and `end` with its id. */
const FRAME = /^(?:open ([\w.-]{1,64}) (\w{1,20})|(send|end) ([\w.-]{1,64})) /;
/** Length of the frame that opens a channel, in characters: the URL in it is the longest part. */
const LONGEST_OPEN = 16 * 1024;
/** Number of last messages that have not reached their pages. */
const MOST_LAST = 256;
/** Characters sent, which the browser compiles as code and so keeps, until a page or a worker collects its garbage. */
const MOST_UNCOLLECTED = 64 * 1024 * 1024;

/** The WebSocket to the browser, and its sessions. */
interface Browser {
  readonly cdp: CdpClient;
  readonly targets: Targets;
}

interface ChannelPlace {
  readonly key: string;
  readonly contextId: number;
}

type BindingCall = EventParams<'Runtime.bindingCalled'>;

/** What this process does with the channels of one kind. Any script can open one, and send anything. */
export interface ChannelKind {
  /** Number of open channels of all pages. */
  readonly most: number;
  /** What a page receives instead of one more. Without it, the oldest channel of the page that has most of them ends. */
  readonly refusal?: object;
  opened(channel: Channel, content: string): void;
  onMessage?(channel: Channel, content: string): void;
  /** The page has ended it, its document was left, or others have taken its place. */
  ended?(channel: Channel): void;
}

/** The messages between a script of a page, or of a worker, and this process about one thing. */
export interface Channel {
  /** A page chooses it. */
  readonly id: string;
  readonly kind: ChannelKind | undefined;
  readonly session: Session;
  /** The id of its page. */
  readonly page: string;
  readonly place: Place | undefined;
  isOpen(): boolean;
  /** Resolves when the page has taken a message, with its answer; undefined if it can't receive it. @param size In characters. */
  send(message: object, size?: number): Promise<unknown>;
  /** This process sends at most one last message, and reads no further one. */
  end(last?: object): void;
}

/**
 * The one way between the scripts of pages and workers, and this process: a binding, over which frames go that name a channel. A page
 * reaches only the channels that it has opened itself.
 */
export class PageBridge {
  readonly #browser: Browser;
  readonly #kinds: ReadonlyMap<string, ChannelKind>;
  /** By session, JavaScript context and id. */
  readonly #open = new Map<string, Channel>();
  /** Last messages that have not reached their pages: a page can ask without an end for what is not there, and not take the answers. */
  #last = 0;
  /** By session: characters sent since garbage was collected. */
  readonly #sentCharacters = new Map<string, number>();

  constructor(browser: Browser, kinds: Readonly<Record<string, ChannelKind>>) {
    this.#browser = browser;
    this.#kinds = new Map(Object.entries(kinds));
  }

  /** Adds the binding to a page or a worker. */
  async add({ id }: Session): Promise<void> {
    await this.#browser.cdp.send('Runtime.addBinding', { name: NAME }, id);
  }

  /** A script has called a binding. */
  receive({ name, payload, executionContextId: contextId }: BindingCall, sessionId = ''): void {
    const session = name === NAME ? this.#browser.targets.of(sessionId) : undefined;
    const [head = '', opened, kind = '', what, id = opened] = FRAME.exec(payload) ?? [];
    if (!session || id === undefined) return;
    const key = `${sessionId} ${contextId} ${id}`;
    const known = this.#open.get(key);
    const content = payload.slice(head.length);
    const begin = () => this.#channelOf({ id, key, session, contextId, kind: this.#kinds.get(kind) });
    if (opened !== undefined) {
      if (!known) this.#begin(key, begin(), content);
    } else if (what === 'end') this.#end(key);
    else if (known) known.kind?.onMessage?.(known, content);
    // It was lost with an earlier connection, or others have taken its place.
    else begin().end({ isLost: true });
  }

  #begin(key: string, channel: Channel, content: string): void {
    const { kind } = channel;
    if (!kind) return;
    const others = [...this.#open].filter(([, one]) => one.kind === kind);
    const isFull = others.length >= kind.most;
    if (content.length > LONGEST_OPEN || (isFull && kind.refusal))
      return channel.end(kind.refusal ?? { isLost: true });
    if (isFull) this.#end(oldestOfMost(others, ({ page }) => page));
    this.#open.set(key, channel);
    kind.opened(channel, content);
  }

  /** The documents of a session, or that of one JavaScript context, were left. */
  leave(sessionId: string, contextId?: number): void {
    const prefix = `${sessionId} ${contextId === undefined ? '' : `${contextId} `}`;
    for (const key of this.#open.keys()) if (key.startsWith(prefix)) this.#end(key);
    if (contextId === undefined) this.#sentCharacters.delete(sessionId);
  }

  #end(key: string): void {
    const channel = this.#open.get(key);
    this.#open.delete(key);
    channel?.kind?.ended?.(channel);
  }

  #channelOf({ key, contextId, ...of }: Pick<Channel, 'id' | 'kind' | 'session'> & ChannelPlace): Channel {
    const isOpen = () => this.#open.get(key) === channel;
    const send = (message: object, size = 0) =>
      this.#send({ value: { id: of.id, ...message }, size }, of.session.id, contextId);
    const end = (last?: object) => {
      if (isOpen()) this.#open.delete(key);
      if (!last || this.#last >= MOST_LAST) return;
      this.#last++;
      void send(last).then(() => this.#last--);
    };
    const place = this.#browser.targets.placeOf(of.session.id, contextId);
    const channel: Channel = { ...of, page: pageOf(of.session).target.id, place, isOpen, send, end };
    return channel;
  }

  async #send(
    { value, size }: { value: object; size: number },
    sessionId: string,
    contextId: number,
  ): Promise<unknown> {
    const { cdp } = this.#browser;
    const call = {
      functionDeclaration: `function (message) { return globalThis.${NAME}?.(message); }`,
      executionContextId: contextId,
      // The browser would keep the code of an expression for some time, so the text is an argument.
      arguments: [{ value }],
      awaitPromise: true,
      returnByValue: true,
    };
    const answered = cdp.send('Runtime.callFunctionOn', call, sessionId);
    const all = (this.#sentCharacters.get(sessionId) ?? 0) + size;
    this.#sentCharacters.set(sessionId, all % MOST_UNCOLLECTED);
    if (all >= MOST_UNCOLLECTED) cdp.send('HeapProfiler.collectGarbage', {}, sessionId).catch(() => {});
    return answered.then(({ result }) => result.value).catch(() => {});
  }
}

/** Returns the key of the oldest entry of the page that has most of them, so that no page takes the entries of others. */
export function oldestOfMost<Value>(
  entries: Iterable<readonly [string, Value]>,
  pageOf: (value: Value) => string,
): string {
  const pages = new Map<string, { readonly oldest: string; count: number }>();
  for (const [key, value] of entries) {
    const page = pages.get(pageOf(value)) ?? { oldest: key, count: 0 };
    page.count++;
    pages.set(pageOf(value), page);
  }
  const all = [...pages.values()];
  return all.reduce((most, one) => (one.count > most.count ? one : most)).oldest;
}
