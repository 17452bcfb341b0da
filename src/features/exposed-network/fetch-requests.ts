import type { Channel, ChannelKind } from './bridge.js';
import { pageOf, type AttachedTarget } from './targets.js';

/** Number of requests of all pages that may be announced and have no response. */
const MOST_ANNOUNCED = 2000;
/** Number of requests whose first URLs are kept, and the length of one in characters. */
const MOST_URLS = 1000;
const LONGEST_URL = 16 * 1024;

/** A request that a script of a page has sent. */
export interface TrackedRequest {
  /** Whether the page can read its response in parts. */
  isOfFetch(): boolean;
  /** It has its response, or has failed. */
  end(): void;
}

interface Announced {
  /** The page, and the origin of the document or worker: others of the page do not speak for it. */
  readonly sender: string;
  readonly url: string;
}

interface Sent {
  /** Undefined if it is not known yet. */
  readonly sender: () => string | undefined;
  readonly url: string;
}

/**
 * Which requests `fetch` has sent. CDP does not say it, but the replaced function announces its requests: a page can read a response in
 * parts if `fetch` has sent all requests of its sender to this URL.
 */
export class FetchRequests implements ChannelKind {
  readonly most = MOST_ANNOUNCED;
  readonly #announced = new Map<Channel, Announced>();
  readonly #sent = new Set<Sent>();
  /** The first URLs of requests, which can be redirected, by their ids in the domain Network. */
  readonly #firstUrls = new Map<string, string>();

  /** A script announces a request. Any script can announce anything. */
  opened(channel: Channel, url: string): void {
    const sender = senderOf(channel.target, channel.place?.origin);
    if (sender === undefined) channel.end();
    else this.#announced.set(channel, { sender, url });
  }

  /** The request has its response. */
  ended(channel: Channel): void {
    this.#announced.delete(channel);
  }

  /** Counts a request of a script. */
  track(sender: Sent['sender'], latestUrl: string, networkId: string | undefined): TrackedRequest {
    const url = this.#firstUrlOf(latestUrl, networkId);
    const request = { sender, url };
    this.#sent.add(request);
    return {
      isOfFetch: () => {
        const own = sender();
        if (own === undefined) return false;
        const sent = count(this.#sent, (one) => one.url === url && one.sender() === own);
        const announced = count(this.#announced.values(), (one) => one.url === url && one.sender === own);
        return announced >= Math.max(1, sent);
      },
      end: () => this.#sent.delete(request),
    };
  }

  /** The URL of a request before its redirects. */
  #firstUrlOf(url: string, networkId: string | undefined): string {
    if (networkId === undefined || url.length > LONGEST_URL) return url;
    const known = this.#firstUrls.get(networkId);
    if (known !== undefined) return known;
    if (this.#firstUrls.size >= MOST_URLS) {
      const [oldest] = this.#firstUrls.keys();
      this.#firstUrls.delete(oldest!);
    }
    this.#firstUrls.set(networkId, url);
    return url;
  }
}

/** Who sends requests: a page, and the origin of one of its documents or workers. Undefined if that is not known. */
export function senderOf(target: AttachedTarget, origin: string | undefined): string | undefined {
  return origin === undefined ? undefined : `${pageOf(target).targetId} ${origin}`;
}

function count<Value>(values: Iterable<Value>, isCounted: (value: Value) => boolean): number {
  return [...values].filter(isCounted).length;
}
