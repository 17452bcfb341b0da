import type { CdpClient } from '../../connect/cdp-client.js';
import type { MessageRules } from '../../connect/message-filter.js';
import type { CommandParams } from '../../connect/message.js';
import { containsFrame } from './targets.js';

/** Number of responses whose events may still arrive. */
const MOST_RESPONSES = 1000;

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
  /** The headers Set-Cookie of responses, by the id of the request in the domain Network. */
  readonly #cookies = new Map<string, string>();

  readonly rules: MessageRules = {
    events: {
      'Target.attachedToTarget': ({ sessionId, targetInfo }) =>
        void this.#targets.set(sessionId, targetInfo.targetId),
      'Target.detachedFromTarget': ({ sessionId = '' }) => {
        this.#targets.delete(sessionId);
        this.#conditions.delete(sessionId);
      },
      'Network.responseReceived': ({ requestId, response }) =>
        this.#withCookies(requestId, 'response', response),
      'Network.requestWillBeSent': ({ requestId, redirectResponse }) =>
        redirectResponse && this.#withCookies(requestId, 'redirectResponse', redirectResponse),
    },
    commands: {
      'Network.emulateNetworkConditions': (conditions, sessionId = '') => {
        this.#conditions.set(sessionId, conditions);
        if (isUsual(conditions)) this.#conditions.delete(sessionId);
        return undefined;
      },
    },
  };

  /** Returns the network conditions that a client emulates for the page of a frame. */
  async conditionsOf(cdp: CdpClient, frameId: string): Promise<Conditions | undefined> {
    for (const [session, conditions] of this.#conditions) {
      const target = this.#targets.get(session);
      if (target !== undefined && (target === frameId || (await containsFrame(cdp, target, frameId))))
        return conditions;
    }
    return undefined;
  }

  /** Lets the clients see the cookies of a response. @param requestId The id of its request in the domain Network. */
  noteResponse(requestId: string | undefined, headers: readonly string[]): void {
    const values = headers.flatMap((header) => /^set-cookie: ?(.*)$/is.exec(header)?.[1] ?? []);
    if (requestId === undefined || values.length === 0) return;
    const [oldest] = this.#cookies.keys();
    if (this.#cookies.size >= MOST_RESPONSES) this.#cookies.delete(oldest!);
    // As the browser writes several headers of one name.
    this.#cookies.set(requestId, values.join('\n'));
  }

  #withCookies(
    requestId: string,
    field: string,
    response: { readonly headers: Readonly<Record<string, string>> },
  ): Promise<object> | undefined {
    const value = this.#cookies.get(requestId);
    if (value === undefined) return undefined;
    const headers = { ...response.headers, 'set-cookie': value };
    return Promise.resolve({ [field]: { ...response, headers } });
  }
}

function isUsual({ offline, latency = 0, downloadThroughput, uploadThroughput }: Conditions): boolean {
  return !offline && latency <= 0 && !isLimit(downloadThroughput) && !isLimit(uploadThroughput);
}

/** Bytes each second; -1 and 0 mean no limit. */
function isLimit(throughput: number | undefined): throughput is number {
  return throughput !== undefined && throughput > 0;
}

/** Returns the time in ms that a body needs. */
export function transferTime(bytes: number, throughput: number | undefined): number {
  return isLimit(throughput) ? (1000 * bytes) / throughput : 0;
}
