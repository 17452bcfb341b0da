import type { FollowUp, MessageRules } from '../../connect/message-filter.js';
import type { CommandParams } from '../../connect/message.js';
import type { Targets } from './targets.js';

/** Number of requests whose events may still arrive, and of the characters of their headers. */
const MOST_EXCHANGES = 1000;
const MOST_CHARACTERS = 16 * 1024 * 1024;
/** Number of bodies that clients can read. */
const MOST_BODIES = 16;

/** A request that was answered from here. */
export interface Exchange {
  readonly url: string;
  readonly sent: Readonly<Record<string, string>>;
  /** Each as `name: value`. */
  readonly received: readonly string[];
  readonly status: number;
}

/** The body of a response that the page reads in parts. */
interface KeptBody {
  /** Resolves at its end. Rejects if it was not kept. */
  whole(): Promise<Buffer>;
  /** Nobody can read it any longer. */
  drop(): void;
}

/** A response in an event. */
interface Reported {
  readonly url: string;
}

type Conditions = CommandParams<'Network.emulateNetworkConditions'>;

/**
 * The library, and other clients of the browser. What they set for the connections of a page would not apply to responses that
 * come from here, and the browser would not report all of these responses.
 */
export class BrowserClients {
  /** The page, or worker, of each CDP session. */
  readonly #targets = new Map<string, string>();
  /** The network conditions that a client emulates, by session. */
  readonly #conditions = new Map<string, Conditions>();
  /** The headers that a client adds to all requests, by session. */
  readonly #headers = new Map<string, Readonly<Record<string, string>>>();
  readonly #languages = new Map<string, string>();
  /** Requests that were answered from here, by their ids in the domain Network. */
  readonly #exchanges = new Map<string, Exchange[]>();
  /** Characters of all of them. */
  #characters = 0;

  /** By the ids of their requests in the domain Network. */
  readonly #bodies = new Map<string, KeptBody>();

  readonly rules: MessageRules = {
    answers: {
      'Network.getResponseBody': ({ requestId }) => this.#bodyOf(requestId),
    },
    events: {
      'Target.attachedToTarget': ({ sessionId, targetInfo }) =>
        void this.#targets.set(sessionId, targetInfo.targetId),
      'Target.detachedFromTarget': ({ sessionId = '' }) => {
        this.#targets.delete(sessionId);
        this.#conditions.delete(sessionId);
        this.#headers.delete(sessionId);
        this.#languages.delete(sessionId);
      },
      'Network.responseReceived': (params) =>
        this.#exchangeOf(params) && Promise.resolve({ hasExtraInfo: true }),
      'Network.requestWillBeSent': (params) =>
        this.#exchangeOf(params) && Promise.resolve({ redirectHasExtraInfo: true }),
    },
    followUps: (_name, params) => this.#extraInfo(params),
    commands: {
      'Emulation.setUserAgentOverride': ({ acceptLanguage }, sessionId = '') => {
        if (acceptLanguage !== undefined) this.#languages.set(sessionId, acceptLanguage);
        return undefined;
      },
      'Network.setExtraHTTPHeaders': ({ headers }, sessionId = '') => {
        this.#headers.set(sessionId, headers);
        return undefined;
      },
      'Network.emulateNetworkConditions': (conditions, sessionId = '') => {
        this.#conditions.set(sessionId, conditions);
        if (isUsual(conditions)) this.#conditions.delete(sessionId);
        return undefined;
      },
    },
  };

  /** Returns the id of the page, or worker, of a session of a client. */
  targetOf(sessionId: string): string | undefined {
    return this.#targets.get(sessionId);
  }

  /** Returns the headers that clients set for all requests of a page. */
  headersOf(targetId: string): Readonly<Record<string, string>> {
    const sessions = [...this.#targets].flatMap(([session, target]) =>
      target === targetId ? [session] : [],
    );
    const all = sessions.map((session) => ({
      ...(this.#languages.has(session) && { 'accept-language': this.#languages.get(session)! }),
      ...this.#headers.get(session),
    }));
    return Object.assign({}, ...all) as Record<string, string>;
  }

  /** Returns the network conditions that a client emulates for the page of a frame. */
  async conditionsOf(targets: Targets, frameId: string): Promise<Conditions | undefined> {
    if (this.#conditions.size === 0) return undefined;
    const target = await targets.containing(frameId);
    for (const [session, conditions] of this.#conditions)
      if (target && this.#targets.get(session) === target.targetId) return conditions;
    return undefined;
  }

  /** Lets the clients see all headers of a request and its response. @param requestId In the domain Network. */
  noteExchange(requestId: string | undefined, exchange: Exchange): void {
    if (requestId === undefined) return;
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
    const kept = this.#bodies.get(requestId);
    return kept?.whole().then((body) => ({
      body: body.toString('base64'),
      base64Encoded: true,
    }));
  }

  /** Returns the request of a response: a request can have several, one after another, each a redirect. */
  #exchangeOf(params: {
    requestId?: string;
    response?: Reported | undefined;
    redirectResponse?: Reported | undefined;
  }) {
    const reported = params.response ?? params.redirectResponse;
    const all = this.#exchanges.get(params.requestId ?? '');
    return reported && all?.find(({ url }) => url === reported.url);
  }

  /** The events in which a browser reports all headers. */
  #extraInfo(params: object): readonly FollowUp[] {
    const { requestId } = params as { requestId?: string };
    const exchange = this.#exchangeOf(params);
    if (!exchange) return [];
    const { sent, received, status } = exchange;
    return [
      {
        method: 'Network.requestWillBeSentExtraInfo',
        params: { requestId, headers: sent, associatedCookies: [], connectTiming: { requestTime: 0 } },
      },
      {
        method: 'Network.responseReceivedExtraInfo',
        params: {
          requestId,
          headers: joined(received),
          statusCode: status,
          blockedCookies: [],
          resourceIPAddressSpace: 'Local',
        },
      },
    ];
  }
}

/** In characters. */
function lengthOf({ url, sent, received }: Exchange): number {
  const all = [url, ...Object.entries(sent).flat(), ...received];
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

/** Returns the time in ms that a request needs under these conditions, with its response. */
export function timeOf(
  { latency = 0, downloadThroughput, uploadThroughput }: Conditions,
  { uploaded, response }: { uploaded: number; response: { readonly body: readonly Buffer[] } },
): number {
  const size = response.body.reduce((sum, { length }) => sum + length, 0);
  const time = (bytes: number, throughput: number | undefined) =>
    isLimit(throughput) ? (1000 * bytes) / throughput : 0;
  return latency + time(uploaded, uploadThroughput) + time(size, downloadThroughput);
}
