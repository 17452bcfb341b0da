import type { EventParams } from '../../wire/message.js';
import type { Context } from './context.js';
import { pageOf, type AttachedTarget, type Place } from './targets.js';

/** The name of the binding in pages and workers. Our script puts its own function in its place. */
export const NAME = '__exposedNetwork';
/** What a frame of a page begins with: `open` with the id and the kind of a channel, `say` and `end` with its id. */
const FRAME = /^(?:open ([\w.-]{1,64}) (\w{1,20})|(say|end) ([\w.-]{1,64})) /;
/** Length of the frame that opens a channel, in characters: the URL in it is the longest part. */
const LONGEST_OPEN = 16 * 1024;
/** Number of refusals that have not reached their pages. */
const MOST_REFUSALS = 256;
/** Characters told, which the browser compiles as code and so keeps, until a page or a worker collects its garbage. */
const MOST_UNCOLLECTED = 64 * 1024 * 1024;

type BindingCall = EventParams<'Runtime.bindingCalled'>;

/** What this process does with the channels of one kind. Any script can open one, and say anything. */
export interface ChannelKind {
  /** Number of open channels of all pages. */
  readonly most: number;
  /** What a page receives instead of one more. Without it, the oldest channel of the page that has most of them ends. */
  readonly refusal?: object;
  opened(channel: Channel, content: string): void;
  said?(channel: Channel, content: string): void;
  /** The page has ended it, its document was left, or others have taken its place. */
  ended?(channel: Channel): void;
}

/** Where a channel begins. */
interface Opened {
  readonly id: string;
  readonly target: AttachedTarget;
  readonly contextId: number;
}

/** What a script of a page, or of a worker, and this process say to each other about one thing. */
export class Channel implements Opened {
  readonly id: string;
  readonly target: AttachedTarget;
  readonly contextId: number;
  readonly kind: ChannelKind | undefined;
  readonly #bridge: PageBridge;

  constructor({ id, target, contextId }: Opened, kind: ChannelKind | undefined, bridge: PageBridge) {
    this.id = id;
    this.target = target;
    this.contextId = contextId;
    this.kind = kind;
    this.#bridge = bridge;
  }

  /** Of its document, or worker. */
  get key(): string {
    return `${this.target.sessionId} ${this.contextId} ${this.id}`;
  }

  get page(): string {
    return pageOf(this.target).targetId;
  }

  get place(): Place | undefined {
    return this.target.places.get(this.contextId);
  }

  get isOpen(): boolean {
    return this.#bridge.has(this);
  }

  /** Resolves when the page has taken a message, with its answer; undefined if it can't receive it. @param size In characters. */
  tell(message: object, size?: number): Promise<unknown> {
    return this.#bridge.tell(this, message, size);
  }

  /** Ends it with a message. */
  refuse(message: object): void {
    this.end();
    void this.#bridge.refuse(this, message);
  }

  /** This process has nothing more to say, and hears nothing more. */
  end(): void {
    this.#bridge.forget(this);
  }
}

/**
 * The one way between the scripts of pages and workers, and this process: a binding, over which frames go that name a channel. A page
 * reaches only the channels that it has opened itself.
 */
export class PageBridge {
  readonly #context: Pick<Context, 'cdp' | 'targets'>;
  readonly #kinds: Readonly<Record<string, ChannelKind>>;
  readonly #open = new Map<string, Channel>();
  /** Refusals that have not reached their pages. */
  #refusals = 0;
  /** By session: characters told since garbage was collected. */
  readonly #told = new Map<string, number>();

  constructor(context: Pick<Context, 'cdp' | 'targets'>, kinds: Readonly<Record<string, ChannelKind>>) {
    this.#context = context;
    this.#kinds = kinds;
  }

  /** Adds the binding to a page or a worker. */
  async add({ sessionId }: AttachedTarget): Promise<void> {
    await this.#context.cdp.send('Runtime.addBinding', { name: NAME }, sessionId);
  }

  /** A script has called a binding. */
  receive({ name, payload, executionContextId: contextId }: BindingCall, sessionId = ''): void {
    const target = name === NAME ? this.#context.targets.of(sessionId) : undefined;
    const [head, opened, kind = '', what, id = opened] = FRAME.exec(payload) ?? [];
    if (!target || head === undefined || id === undefined) return;
    const content = payload.slice(head.length);
    const of = Object.hasOwn(this.#kinds, kind) ? this.#kinds[kind] : undefined;
    const channel = new Channel({ id, target, contextId }, of, this);
    const known = this.#open.get(channel.key);
    if (opened !== undefined) {
      if (!known && of) this.#begin(channel, of, content);
    } else if (what === 'end') this.#end(known);
    else if (known) known.kind?.said?.(known, content);
    // It was lost with an earlier connection, or others have taken its place.
    else void this.refuse(channel, { isLost: true });
  }

  #begin(channel: Channel, kind: ChannelKind, content: string): void {
    const { most, refusal } = kind;
    const others = [...this.#open].filter(([, one]) => one.kind === kind);
    const isFull = others.length >= most;
    if (content.length > LONGEST_OPEN || (isFull && refusal))
      return void this.refuse(channel, refusal ?? { isLost: true });
    if (isFull) this.#end(this.#open.get(oldestOfMost(others, (one) => one.page)));
    this.#open.set(channel.key, channel);
    kind.opened(channel, content);
  }

  /** The documents of a session, or that of one JavaScript context, were left. */
  leave(sessionId: string, contextId?: number): void {
    const prefix = `${sessionId} ${contextId === undefined ? '' : `${contextId} `}`;
    for (const [key, channel] of this.#open) if (key.startsWith(prefix)) this.#end(channel);
    if (contextId === undefined) this.#told.delete(sessionId);
  }

  #end(channel: Channel | undefined): void {
    if (!channel) return;
    this.forget(channel);
    channel.kind?.ended?.(channel);
  }

  has(channel: Channel): boolean {
    return this.#open.get(channel.key) === channel;
  }

  forget(channel: Channel): void {
    if (this.has(channel)) this.#open.delete(channel.key);
  }

  async tell({ id, target, contextId }: Channel, message: object, size = 0): Promise<unknown> {
    const { sessionId } = target;
    const call = {
      functionDeclaration: `function (message) { return globalThis.${NAME}?.(message); }`,
      executionContextId: contextId,
      // Not in the code of an expression, which the browser would keep for some time.
      arguments: [{ value: { id, ...message } }],
      awaitPromise: true,
      returnByValue: true,
    };
    const told = this.#context.cdp.send('Runtime.callFunctionOn', call, sessionId);
    const all = (this.#told.get(sessionId) ?? 0) + size;
    this.#told.set(sessionId, all % MOST_UNCOLLECTED);
    if (all >= MOST_UNCOLLECTED)
      this.#context.cdp.send('HeapProfiler.collectGarbage', {}, sessionId).catch(() => {});
    return told.then(({ result }) => result.value).catch(() => {});
  }

  /** A page can say things that have no effect without an end, and not take the answers. */
  async refuse(channel: Channel, message: object): Promise<void> {
    if (this.#refusals >= MOST_REFUSALS) return;
    this.#refusals++;
    await this.tell(channel, message);
    this.#refusals--;
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
