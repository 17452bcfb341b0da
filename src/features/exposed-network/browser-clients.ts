import type { MessageRules } from '../../connect/message-filter.js';
import type { CommandParams } from '../../wire/message.js';
import type { Message } from '../../wire/forms.js';
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

/** A CDP session of a client, and what the client has set there. */
interface ClientSession {
  /** The page, or worker. */
  readonly targetId: string;
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
  readonly #sessions = new Map<string, ClientSession>();
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
      'Target.attachedToTarget': ({ sessionId, targetInfo: { targetId } }) =>
        void this.#sessions.set(sessionId, { targetId }),
      'Target.detachedFromTarget': ({ sessionId = '' }) => void this.#sessions.delete(sessionId),
      'Network.responseReceived': (params) =>
        this.#exchangeOf(params) && Promise.resolve({ hasExtraInfo: true }),
      'Network.requestWillBeSent': (params) =>
        this.#exchangeOf(params) && Promise.resolve({ redirectHasExtraInfo: true }),
    },
    followUps: (_name, params) => this.#extraInfo(params as Reported),
    commands: {
      'Emulation.setUserAgentOverride': ({ acceptLanguage, userAgent }, session) =>
        this.#note(session, {
          ...(acceptLanguage !== undefined && { language: weighted(acceptLanguage) }),
          ...(userAgent && { userAgent }),
        }),
      'Network.setExtraHTTPHeaders': ({ headers }, session) => this.#note(session, { headers }),
      'Network.emulateNetworkConditions': (conditions, session) =>
        this.#note(session, { conditions: isUsual(conditions) ? undefined : conditions }),
    },
  };

  #note(sessionId = '', what: Omit<ClientSession, 'targetId'>): undefined {
    Object.assign(this.#sessions.get(sessionId) ?? {}, what);
  }

  /** Returns the id of the page, or worker, of a session of a client. */
  targetOf(sessionId: string): string | undefined {
    return this.#sessions.get(sessionId)?.targetId;
  }

  /** Returns the headers that clients set for all requests of a page. */
  headersOf(target: string): Record<string, string> {
    const all = [...this.#sessions.values()].filter(({ targetId }) => targetId === target);
    return Object.assign(
      {},
      ...all.map(({ language, headers }) => ({
        ...(language !== undefined && { 'accept-language': language }),
        ...headers,
      })),
    ) as Record<string, string>;
  }

  /** Returns the user agent that a client has set for a page. */
  userAgentOf(target: string): string | undefined {
    const all = [...this.#sessions.values()].filter(({ targetId }) => targetId === target);
    return all.findLast(({ userAgent }) => userAgent !== undefined)?.userAgent;
  }

  /** Returns the network conditions that a client emulates for the page of a frame. */
  async conditionsOf(targets: Targets, frameId: string): Promise<Conditions | undefined> {
    const limited = [...this.#sessions.values()].filter(({ conditions }) => conditions);
    const target = limited.length === 0 ? undefined : await targets.containing(frameId);
    return limited.find(({ targetId }) => targetId === target?.targetId)?.conditions;
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

  /** The events in which a browser reports all headers. */
  #extraInfo(params: Reported): readonly Message[] {
    const { requestId } = params;
    const exchange = this.#exchangeOf(params);
    if (!exchange) return [];
    const { sent, headers, status } = exchange;
    const request = { requestId, headers: sent, associatedCookies: [], connectTiming: { requestTime: 0 } };
    const facts = { statusCode: status, blockedCookies: [], resourceIPAddressSpace: 'Local' };
    return [
      { method: 'Network.requestWillBeSentExtraInfo', params: request },
      {
        method: 'Network.responseReceivedExtraInfo',
        params: { requestId, headers: joined(headers), ...facts },
      },
    ];
  }
}

/** Languages as Chromium sends them: the later ones weigh less. */
function weighted(languages: string): string {
  const all = languages.split(',').map((one) => one.trim());
  return all.map((one, index) => (index === 0 ? one : `${one};q=0.${Math.max(1, 10 - index)}`)).join(',');
}

/** In characters. */
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
