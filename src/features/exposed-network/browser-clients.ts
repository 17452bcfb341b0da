import type { CommandParams, Layer, Session, Sessions, WireEvent } from '../../wire/layer.js';
import type { ResponseHead } from './exposed-request.js';
import type { Targets } from './targets.js';

/** Number of requests whose events may still arrive, and of the characters of their headers. */
const MOST_EXCHANGES = 1000;
const MOST_CHARACTERS = 16 * 1024 * 1024;
/** Number of bodies that clients can read. */
const MOST_BODIES = 16;

/** A request that was answered from here. */
interface Exchange extends ResponseHead {
  readonly url: string;
}

/** The body of a response that the page reads in parts. */
interface KeptBody {
  /** Resolves at its end. Rejects if it was not kept. */
  whole(): Promise<Buffer>;
  /** Nobody can read it any longer. */
  drop(): void;
}

/** An event that can report a response. */
interface Reported {
  readonly requestId?: string;
  readonly response?: { readonly url: string } | undefined;
  readonly redirectResponse?: { readonly url: string } | undefined;
}

type Conditions = CommandParams<'Network.emulateNetworkConditions'>;

/** What a client has set in a session. */
interface Settings {
  readonly conditions?: Conditions | undefined;
  /** Added to all requests. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly language?: string;
  readonly userAgent?: string;
}

/**
 * The library, and other clients of the browser. What they set for the connections of a page would not apply to responses that
 * come from here, and the browser would not report all of these responses.
 */
export class BrowserClients {
  readonly #sessions: Sessions;
  readonly #settings = new WeakMap<Session, Settings>();
  /** Requests that were answered from here, by their ids in the domain Network. */
  readonly #exchanges = new Map<string, Exchange[]>();
  /** Characters of all of them. */
  #characters = 0;

  /** By the ids of their requests in the domain Network. */
  readonly #bodies = new Map<string, KeptBody>();

  constructor(sessions: Sessions) {
    this.#sessions = sessions;
  }

  readonly layer: Layer = {
    name: 'exposed-network',
    commands: {
      'Network.getResponseBody': ({ params }, next) => this.#bodyOf(params.requestId) ?? next(),
      'Emulation.setUserAgentOverride': ({ params: { acceptLanguage, userAgent }, session }, next) => {
        this.#note(session, {
          ...(acceptLanguage !== undefined && { language: weighted(acceptLanguage) }),
          ...(userAgent && { userAgent }),
        });
        return next();
      },
      'Network.setExtraHTTPHeaders': ({ params: { headers }, session }, next) => {
        this.#note(session, { headers });
        return next();
      },
      'Network.emulateNetworkConditions': ({ params, session }, next) => {
        this.#note(session, { conditions: isUsual(params) ? undefined : params });
        return next();
      },
    },
    events: {
      'Network.responseReceived': (event, next) =>
        this.#withAllHeaders(event, () => next({ hasExtraInfo: true })) ?? next(),
      'Network.requestWillBeSent': (event, next) =>
        this.#withAllHeaders(event, () => next({ redirectHasExtraInfo: true })) ?? next(),
    },
  };

  #note(session: Session | undefined, what: Settings): void {
    if (session) this.#settings.set(session, { ...this.#settings.get(session), ...what });
  }

  /** What clients have set in their sessions of a page, or worker. */
  #settingsOf(target: string): readonly Settings[] {
    const sessions = this.#sessions.all().filter((one) => one.target.id === target);
    return sessions.flatMap((one) => this.#settings.get(one) ?? []);
  }

  /** Returns the headers that clients set for all requests of a page. */
  headersOf(target: string): Record<string, string> {
    const all = this.#settingsOf(target).map(({ language, headers }) => ({
      ...(language !== undefined && { 'accept-language': language }),
      ...headers,
    }));
    return Object.assign({}, ...all) as Record<string, string>;
  }

  /** Returns the user agent that a client has set for a page. */
  userAgentOf(target: string): string | undefined {
    return this.#settingsOf(target).findLast(({ userAgent }) => userAgent !== undefined)?.userAgent;
  }

  /** Returns the network conditions that a client emulates for the page of a frame. */
  async conditionsOf(targets: Targets, frameId: string): Promise<Conditions | undefined> {
    const limited = this.#sessions.all().filter((one) => this.#settings.get(one)?.conditions);
    const page = limited.length === 0 ? undefined : await targets.containing(frameId);
    const found = limited.find(({ target }) => target.id === page?.target.id);
    return found && this.#settings.get(found)?.conditions;
  }

  /** Lets the clients see all headers of a request and its response. @param requestId In the domain Network. */
  noteExchange(requestId: string | undefined, url: string, response: ResponseHead): void {
    if (requestId === undefined) return;
    const { status, reason, headers, sent } = response;
    const exchange = { url, status, reason, headers, sent };
    this.#exchanges.set(requestId, [...(this.#exchanges.get(requestId) ?? []), exchange]);
    this.#characters += lengthOf(exchange);
    for (const [oldest, exchanges] of this.#exchanges) {
      if (this.#exchanges.size <= MOST_EXCHANGES && this.#characters <= MOST_CHARACTERS) break;
      this.#exchanges.delete(oldest);
      for (const one of exchanges) this.#characters -= lengthOf(one);
    }
  }

  /** Lets the clients read a body, of which the browser has nothing. */
  keepBody(requestId: string | undefined, body: KeptBody): void {
    if (requestId === undefined) return body.drop();
    const [[oldest, dropped] = []] = this.#bodies;
    if (this.#bodies.size >= MOST_BODIES) {
      dropped!.drop();
      this.#bodies.delete(oldest!);
    }
    this.#bodies.set(requestId, body);
  }

  #bodyOf(requestId: string): Promise<object> | undefined {
    const whole = this.#bodies.get(requestId)?.whole();
    return whole?.then((body) => ({ body: body.toString('base64'), base64Encoded: true }));
  }

  /** Returns the request of a response: a request can have several, one after another, each a redirect. */
  #exchangeOf({ requestId = '', response, redirectResponse = response }: Reported): Exchange | undefined {
    return this.#exchanges.get(requestId)?.find(({ url }) => url === redirectResponse?.url);
  }

  /** Lets the events in which a browser reports all headers follow an event of a request that was answered from here. */
  #withAllHeaders(event: WireEvent<Reported>, next: () => void | Promise<void>): Promise<void> | undefined {
    const exchange = this.#exchangeOf(event.params);
    return exchange && this.#passWith(exchange, event, next);
  }

  async #passWith(
    { sent, headers, status }: Exchange,
    event: WireEvent<Reported>,
    next: () => void | Promise<void>,
  ): Promise<void> {
    await next();
    const { requestId } = event.params;
    const request = { requestId, headers: sent, associatedCookies: [], connectTiming: { requestTime: 0 } };
    const facts = { statusCode: status, blockedCookies: [], resourceIPAddressSpace: 'Local' };
    event.emit('Network.requestWillBeSentExtraInfo', request);
    event.emit('Network.responseReceivedExtraInfo', { requestId, headers: joined(headers), ...facts });
  }
}

/** Languages as Chromium sends them: the later ones weigh less. */
function weighted(languages: string): string {
  const all = languages.split(',').map((one) => one.trim());
  return all.map((one, index) => (index === 0 ? one : `${one};q=0.${Math.max(1, 10 - index)}`)).join(',');
}

/** Returns the length of what is kept of a request, in characters. */
function lengthOf({ url, sent, headers }: Exchange): number {
  const all = [url, ...Object.entries(sent).flat(), ...headers];
  return all.reduce((sum, { length }) => sum + length, 0);
}

/** Headers as the browser reports them: several of one name, with line breaks between them. */
function joined(headers: readonly string[]): Record<string, string> {
  const byName = new Map<string, [name: string, value: string]>();
  for (const header of headers) {
    const [name = '', ...rest] = header.split(': ');
    const before = byName.get(name.toLowerCase());
    const value = rest.join(': ');
    byName.set(name.toLowerCase(), [before?.[0] ?? name, before ? `${before[1]}\n${value}` : value]);
  }
  return Object.fromEntries(byName.values());
}

function isUsual({ offline, latency = 0, downloadThroughput, uploadThroughput }: Conditions): boolean {
  return !offline && latency <= 0 && !isLimit(downloadThroughput) && !isLimit(uploadThroughput);
}

/** Bytes each second; -1 and 0 mean no limit. */
function isLimit(throughput: number | undefined): throughput is number {
  return throughput !== undefined && throughput > 0;
}

/** Returns the time in ms that a request needs under these conditions, with what was read of its response. */
export function timeOf(
  { latency = 0, downloadThroughput, uploadThroughput }: Conditions,
  uploaded: Buffer | undefined,
  downloaded: readonly Buffer[],
): number {
  const size = downloaded.reduce((sum, { length }) => sum + length, 0);
  const time = (bytes: number, throughput: number | undefined) =>
    isLimit(throughput) ? (1000 * bytes) / throughput : 0;
  return latency + time(uploaded?.length ?? 0, uploadThroughput) + time(size, downloadThroughput);
}
