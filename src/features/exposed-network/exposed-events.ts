import { TextDecoder } from 'node:util';
import { onAbort } from '../../shared/abort.js';
import { clock, delay, startTimer } from '../../shared/clock.js';
import type { Channel, ChannelKind } from './bridge.js';
import type { ExposedUrl } from './exposed-hosts.js';
import type { ExposedResponse, Unread } from './response-bodies.js';
import type { BridgeInPage } from './page-bridge.js';

/** The settings of the script in pages. */
export const EVENT_VALUES = {
  /** The type of the event that ends each part of a stream but the last one. */
  partEnds: 'exposed-network-part-ends',
  /** Precedes the id of an EventSource, at the end of the fragment of its URL. No server receives a fragment. */
  mark: 'exposed-event-source-',
};
/** Milliseconds in which the first events can arrive with the response, and the longest time of a part without events. */
const FIRST_WAIT = 20;
const LONGEST_WAIT = 60_000;
/** Milliseconds after which an EventSource connects again for the next part, and in which it must. */
const PAUSE = 100;
const LONGEST_ABSENCE = 10_000;
/** Milliseconds after which an EventSource connects again, if its server names no other time. */
const USUAL_RETRY = '3000';
/** The reason of the abort of a request whose page was left. */
export const LEFT = 'left';
/** Characters of events that a page has not taken: above that, their server waits. */
const MOST_WAITING = 1024 * 1024;
/** Maximum length of one event, in characters. */
const LONGEST_EVENT = 8 * 1024 * 1024;

export interface EventsRequest {
  /** The document, or worker, of the EventSource. */
  readonly frameId: string;
  readonly url: ExposedUrl;
  /** The id of the EventSource, a secret of its document. */
  readonly source: string;
}

/** Returns the id of the EventSource that has sent a request. Undefined for what something else has sent. */
export function sourceOf({ urlFragment }: { readonly urlFragment?: string | undefined }): string | undefined {
  return urlFragment?.split(EVENT_VALUES.mark)[1];
}

/**
 * The streams of events of EventSources. No command of CDP delivers a response in parts, so each part is a response of its own, after
 * which the EventSource connects again, while the connection to its server stays open.
 */
export class EventStreams implements ChannelKind {
  /** A channel of this kind ends when it is opened. */
  readonly most = Number.POSITIVE_INFINITY;
  readonly #all = new Set<EventStream>();
  readonly #signal: AbortSignal;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Returns the stream of an EventSource that connects again, which may be over. Each EventSource has streams of its own only. */
  take({ frameId, url, source }: EventsRequest): EventStream | undefined {
    const taken = [...this.#all].find(
      ({ isAbsent, request }) =>
        isAbsent && request.source === source && request.frameId === frameId && request.url === url,
    );
    if (taken?.isOver) this.#all.delete(taken);
    return taken;
  }

  /** A page has closed an EventSource, perhaps between two parts, when the browser has no request of it. */
  opened(channel: Channel, source: string): void {
    channel.end();
    for (const stream of this.#all) if (stream.request.source === source) stream.close();
  }

  /** The document, or the worker, of a frame was left: the next one connects by itself. */
  leave(frameId: string): void {
    for (const stream of this.#all) if (stream.request.frameId === frameId) stream.close();
  }

  /** @param before The one that has ended, if the EventSource connects again. */
  begin(request: EventsRequest, response: Unread, before?: EventStream): EventStream {
    const stream = new EventStream(request, response, () => this.#all.delete(stream));
    if (before) stream.continue(before);
    this.#all.add(stream);
    response.rest.once(
      'close',
      onAbort(this.#signal, () => stream.close()),
    );
    return stream;
  }
}

export class EventStream {
  readonly request: EventsRequest;
  /** The EventSource is between two parts. */
  isAbsent = false;
  #hasEnded = false;
  /** Its EventSource has received the end, too: until then, what arrived while it was absent waits for it. */
  isOver = false;
  /** What the events that the page has received say. */
  lastId = '';
  #retry = USUAL_RETRY;
  readonly #response: Unread;
  readonly #onGone: () => void;
  /** What has arrived, and no page has received. */
  #text = '';
  #isFirst = true;
  #wake = () => {};
  #absence: NodeJS.Timeout | undefined;

  constructor(request: EventsRequest, response: Unread, onGone: () => void) {
    this.request = request;
    this.#response = response;
    this.#onGone = onGone;
    const { rest } = response;
    const decoder = new TextDecoder();
    rest.on('data', (chunk: Buffer) => {
      this.#text += decoder.decode(chunk, { stream: true });
      if (this.#text.length > LONGEST_EVENT) this.close();
      if (!this.#isReady) return;
      if (this.#text.length > MOST_WAITING) rest.pause();
      this.#wake();
    });
    const end = () => {
      this.#hasEnded = true;
      this.#wake();
    };
    rest.once('end', end).once('error', end);
  }

  /** An EventSource keeps the id and the time that an earlier stream has named. */
  continue(before: EventStream): void {
    this.lastId = before.lastId;
    this.#retry = before.#retry;
  }

  /** Closes the connection to the server. */
  close(): void {
    clock.clearTimeout(this.#absence);
    this.#response.rest.destroy();
    this.#hasEnded = true;
    this.#onGone();
  }

  /** Waits for the next events. Resolves to a response with them. */
  async next(signal: AbortSignal): Promise<ExposedResponse> {
    clock.clearTimeout(this.#absence);
    this.isAbsent = false;
    const stopListening = onAbort(signal, () => {
      if (signal.reason === LEFT) this.close();
      // The WebSocket to the browser was lost, and will be replaced.
      else this.#leave(LONGEST_ABSENCE);
    });
    // A page sees that its EventSource is open before the first event.
    const longest = this.#isFirst ? FIRST_WAIT : LONGEST_WAIT;
    const whenReady = (wake: () => void) => {
      this.#wake = wake;
      return () => (this.#wake = () => {});
    };
    try {
      if (!this.#isReady) await delay(longest, signal, whenReady);
      return this.#take();
    } finally {
      stopListening();
    }
  }

  /** @param longest Milliseconds in which the EventSource must connect again. */
  #leave(longest: number): void {
    this.isAbsent = true;
    this.#absence = startTimer(longest, () => this.close());
  }

  get #isReady(): boolean {
    return this.#hasEnded || endOfEvents(this.#text) > 0;
  }

  #take(): ExposedResponse {
    const events = this.#hasEnded ? this.#text : this.#text.slice(0, endOfEvents(this.#text));
    this.#text = this.#text.slice(events.length);
    this.#response.rest.resume();
    this.isOver = this.#hasEnded;
    for (const [, field, value = ''] of events.matchAll(KEPT)) {
      if (field === 'retry' && /^\d+$/.test(value)) this.#retry = value;
      if (field === 'id' && !value.includes('\0')) this.lastId = value;
    }
    // Of a stream that has ended, its EventSource names the last event, after the time that its server asked for.
    this.#leave(LONGEST_ABSENCE + (this.#hasEnded ? Number(this.#retry) : 0));
    // The browser removes one at the beginning of each part.
    const mark = events.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : '';
    const body = this.#hasEnded
      ? `retry: ${this.#retry}\n\n${events}`
      : `${mark}${events}retry: ${PAUSE}\nevent: ${EVENT_VALUES.partEnds}\ndata:\n\n`;
    const { headers } = this.#response;
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    return {
      ...this.#response,
      headers: isFirst ? headers : headers.filter((one) => !/^set-cookie:/i.test(one)),
      body: [Buffer.from(body)],
    };
  }
}

const BYTE_ORDER_MARK = '\uFEFF';

/** The lines of the fields that an EventSource keeps. */
const KEPT = /^(id|retry)(?:: ?([^\r\n]*))?$/gm;

/** Where the last event ends: with an empty line. */
function endOfEvents(text: string): number {
  const ends = ['\n\n', '\r\r', '\n\r\n'].map((end) => {
    const at = text.lastIndexOf(end);
    return at === -1 ? 0 : at + end.length;
  });
  return Math.max(...ends);
}

/**
 * Hides from a page, or a worker, that its EventSources of exposed hosts connect again after each part of their streams. Runs there, before
 * the page's own scripts, and so uses nothing of this module.
 */
export function hideReconnects(bridge: BridgeInPage, { partEnds, mark }: typeof EVENT_VALUES): void {
  const Native = globalThis.EventSource;
  if (typeof Native !== 'function') return;
  const { prototype } = Native;
  const before = Object.getOwnPropertyDescriptors(prototype);
  const stateOf = (source: EventSource) => before.readyState.get!.call(source);
  /** The URLs that pages have named, and the ids. */
  const opened = new WeakMap<EventSource, { readonly url: string; readonly id: string }>();
  /** Those whose part has ended, and those that connect again. */
  const ended = new WeakSet<EventSource>();
  const reopening = new WeakSet<EventSource>();
  const readyState = function (this: EventSource) {
    const state = stateOf(this);
    return state === 0 && (ended.has(this) || reopening.has(this)) ? 1 : state;
  };
  const url = function (this: EventSource): string {
    return opened.get(this)?.url ?? before.url.get!.call(this);
  };
  const close = new Proxy(before.close.value!, {
    apply(target, self: EventSource, parameters) {
      Reflect.apply(target, self, parameters as []);
      const id = opened.get(self)?.id;
      if (id !== undefined) bridge.open('closing', `${Math.random()}`, id, () => {}).end();
    },
  });
  Object.defineProperty(prototype, 'readyState', { ...before.readyState, get: readyState });
  Object.defineProperty(prototype, 'url', { ...before.url, get: url });
  Object.defineProperty(prototype, 'close', { ...before.close, value: close });

  globalThis.EventSource = new Proxy(Native, {
    construct(target, parameters: [string | URL, EventSourceInit?], newTarget) {
      const exposed = parameters.length > 0 ? bridge.exposedUrlOf(parameters[0]) : undefined;
      if (!exposed) return Reflect.construct(target, parameters, newTarget) as EventSource;
      const { href } = exposed;
      const id = crypto.getRandomValues(new Uint32Array(4)).join('-');
      exposed.hash += `${mark}${id}`;
      const [, ...options] = parameters;
      const source = Reflect.construct(target, [exposed.href, ...options], newTarget) as EventSource;
      opened.set(source, { url: href, id });
      // Before all listeners of the page.
      source.addEventListener(partEnds, () => ended.add(source));
      source.addEventListener('error', (event) => {
        reopening.delete(source);
        if (!ended.delete(source) || stateOf(source) !== 0) return;
        reopening.add(source);
        event.stopImmediatePropagation();
      });
      source.addEventListener('open', (event) => {
        if (reopening.delete(source)) event.stopImmediatePropagation();
      });
      return source;
    },
  });
}
