import type { MessageRules } from '../../connect/message-filter.js';
import type { EventParams } from '../../connect/message.js';
import { clock } from '../../shared/clock.js';
import { jsonOf } from '../../shared/json.js';
import type { ExposedHosts, ExposedUrl } from './exposed-hosts.js';

/** Time in ms in which Playwright reports a WebSocket that a page has opened. A route of the user may have taken it. */
const REPORT_TIMEOUT = 10_000;
const MOST_CALLS = 1000;

/** A page has called Playwright's function for WebSockets. */
interface Call {
  /** Undefined if it is opaque or not known. */
  readonly origin: string | undefined;
  readonly urls: readonly ExposedUrl[];
  readonly at: number;
}

/**
 * Finds the origin of the page that opens a WebSocket. Playwright reports only a URL, which any script can choose; the browser
 * reports in which document the script runs.
 */
export class WebSocketCallers {
  readonly #hosts: ExposedHosts;
  /** The origins of the documents, by CDP session and JavaScript world. */
  readonly #origins = new Map<string | undefined, Map<number, string>>();
  #calls: Call[] = [];

  constructor(hosts: ExposedHosts) {
    this.#hosts = hosts;
  }

  get rules(): MessageRules {
    return {
      events: {
        'Runtime.executionContextCreated': ({ context }, session) => {
          const ofSession = this.#origins.get(session) ?? new Map<number, string>();
          this.#origins.set(session, ofSession.set(context.id, context.origin));
        },
        'Runtime.executionContextsCleared': (_params, session) => void this.#origins.delete(session),
        'Target.detachedFromTarget': ({ sessionId }) => void this.#origins.delete(sessionId),
        'Runtime.bindingCalled': (params, session) => this.#note(params, session),
      },
    };
  }

  /** Returns the origin of the next WebSocket with this URL; undefined if it is opaque, or if it could be of several. */
  takeOrigin(url: ExposedUrl): string | undefined {
    const calls = this.#calls.filter(({ urls }) => urls.includes(url));
    const [first] = calls;
    this.#calls = this.#calls.filter((call) => call !== first);
    return calls.every(({ origin }) => origin === first?.origin) ? first?.origin : undefined;
  }

  #note(
    { payload, executionContextId }: EventParams<'Runtime.bindingCalled'>,
    session: string | undefined,
  ): void {
    const read = (text: string) => this.#hosts.read(text, 'websocket') ?? [];
    const urls = textsIn(jsonOf(payload)).flatMap(read);
    if (urls.length === 0) return;
    const origin = this.#origins.get(session)?.get(executionContextId);
    const now = clock.now();
    const recent = this.#calls.filter(({ at }) => now - at < REPORT_TIMEOUT).slice(-MOST_CALLS);
    const isOpaque = origin === undefined || !/^https?:/.test(origin);
    this.#calls = [...recent, { origin: isOpaque ? undefined : origin, urls, at: now }];
  }
}

/** All texts in a JSON value: how Playwright encodes the arguments of a function is its own. */
function textsIn(value: unknown): string[] {
  // Not recursive: a page chooses the depth.
  const values = [value];
  for (const one of values)
    if (typeof one === 'object' && one !== null) for (const inner of Object.values(one)) values.push(inner);
  return values.filter((one) => typeof one === 'string');
}
