import type { ProxiedBrowser } from '../calls/proxied-browser.js';
import { LATEST } from '../calls/lease-requests.js';
import { Refusal } from '../net/loopback-server.js';
import type { ProxyServer } from '../calls/proxy-server.js';
import { clock } from '../shared/clock.js';
import { duration, InvalidOptionError, isPooledBrowserError, sentence } from '../shared/errors.js';
import { AcquireTimeoutError } from '../shared/lease-errors.js';
import { checked, checksOf, optional, readOptions, text } from '../shared/options.js';
import { redact } from '../shared/redact.js';
import { describeReplays } from './lease.js';
import { time } from './options.js';

/** Time in ms between two notifications of a wait. */
const PROGRESS = 5000;

interface Limits {
  /** The names of the pools. */
  readonly pool: string;
  /** In ms: the default and the most. */
  readonly lifetime: number;
  /** Most browsers at once. */
  readonly max: number | undefined;
  /** In ms. */
  readonly acquireTimeout: number;
}

export interface ToolCall {
  /** Aborts when the host cancels the call, or ends. */
  readonly signal: AbortSignal;
  readonly notify: (progress: { progress: number; message: string }) => Promise<void>;
}

/** A tool, with what the model reads of it. */
interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: {
    readonly type: 'object';
    readonly properties: Record<string, object>;
    readonly required?: string[];
    readonly additionalProperties: false;
  };
  readonly annotations: {
    readonly title: string;
    readonly readOnlyHint?: boolean;
    readonly destructiveHint: boolean;
  };
  /** Resolves with what the model gets. */
  readonly run: (given: object, call: ToolCall) => Promise<Record<string, unknown>>;
}

const timeOf = (value: number | string): number => (typeof value === 'number' ? value : time(value));

/** A time as a model writes it. */
const anyTime = () =>
  checked<number | string>((value) => {
    try {
      if (typeof value === 'number' ? value > 0 && value < Infinity : time(String(value)) > 0)
        return undefined;
    } catch {
      // The reason is below.
    }
    return 'must be a time such as "10m" or "90s", or a number of milliseconds above 0';
  });

const leaseChecks = checksOf<{ name: string; lifetime?: number | string | undefined }>()({
  name: text(),
  lifetime: optional(anyTime()),
});
const statusChecks = checksOf<{ name?: string | undefined; extend?: number | string | undefined }>()({
  name: optional(text()),
  extend: optional(anyTime()),
});
const releaseChecks = checksOf<{ name: string }>()({ name: text() });

/** The tools of `pooled-browser mcp`: a layer above a proxy, which leases no browser for a client. */
export class BrowserTools {
  readonly #proxy: ProxyServer;
  readonly #limits: Limits;
  readonly #tools: readonly Tool[];

  constructor(proxy: ProxyServer, limits: Limits) {
    this.#proxy = proxy;
    this.#limits = limits;
    this.#tools = [this.#lease(), this.#status(), this.#release()];
  }

  /** What the host says to the model about all tools. */
  get instructions(): string {
    return (
      `Leases browsers of the pool ${this.#limits.pool}. Call lease_browser when you need a browser, pass the cdpUrl of its result to a ` +
      'program that drives browsers, and call release_browser when you no longer need the browser.'
    );
  }

  has(name: string): boolean {
    return this.#tools.some((tool) => tool.name === name);
  }

  list(): Omit<Tool, 'run'>[] {
    return this.#tools.map(({ run: _run, ...tool }) => tool);
  }

  /** Calls a tool. What fails is a result, too, so that the model reads the reason. */
  async call(name: string, given: object, how: ToolCall) {
    const tool = this.#tools.find((one) => one.name === name)!;
    try {
      const content = await tool.run(given, how);
      return { content: [textOf(JSON.stringify(content, undefined, 2))], structuredContent: content };
    } catch (error) {
      how.signal.throwIfAborted();
      return { content: [textOf(this.#explain(error))], isError: true };
    }
  }

  #lease(): Tool {
    const { lifetime: most, pool } = this.#limits;
    return {
      name: 'lease_browser',
      description:
        `Leases a browser of the pool ${pool} for you alone and returns its address (cdpUrl, Chrome DevTools Protocol). Pass cdpUrl to a program ` +
        'that drives browsers: chromium.connectOverCDP(cdpUrl) of Playwright, puppeteer.connect({ browserWSEndpoint: cdpUrl }), ' +
        'agent-browser --cdp, @playwright/mcp --cdp-endpoint, chrome-devtools-mcp --wsEndpoint. One program at a time can be connected; pages ' +
        `and logins stay until the release. Waits while no browser is free. ${ASK} Call release_browser when you are done: others wait for ` +
        'browsers.',
      inputSchema: {
        type: 'object',
        properties: {
          name: { type: 'string', description: NAME },
          lifetime: {
            type: ['string', 'number'],
            description:
              `How long you may need the browser: "10m", "90s", or milliseconds. Default, and the most: ${words(most)}. ` +
              'The browser is released after this time; lease_status can extend it.',
          },
        },
        required: ['name'],
        additionalProperties: false,
      },
      annotations: { title: 'Lease a browser', destructiveHint: false },
      run: async (given, { signal, notify }) => {
        const { name, lifetime: asked } = readOptions(leaseChecks, given, 'lease_browser');
        const lifetime = asked === undefined ? undefined : timeOf(asked);
        this.#expectAllowed(name, lifetime);
        const stop = this.#showWait(notify);
        const leasing = this.#proxy.lease(name, { signal, lifetime });
        return this.#describe(await leasing.finally(stop));
      },
    };
  }

  #status(): Tool {
    return {
      name: 'lease_status',
      description:
        'Lists the browsers that you have leased: name, address (cdpUrl), session, age, and when the lease ends. With extend, the lease of name ' +
        'lasts longer. handoff is the answer of the person whom you have asked with handoffUrl. Use it if you have lost an address, wait for a ' +
        'person, or if the time of a lease is almost over.',
      inputSchema: {
        type: 'object',
        properties: {
          name: { type: 'string', description: 'Only the browser of this name.' },
          extend: {
            type: ['string', 'number'],
            description:
              'Time to add to the lease of name: "10m", "90s", or milliseconds. ' +
              `A lease lasts ${words(2 * this.#limits.lifetime)} at most.`,
          },
        },
        additionalProperties: false,
      },
      annotations: { title: 'List the leased browsers', destructiveHint: false },
      run: async (given) => {
        const { name, extend } = readOptions(statusChecks, given, 'lease_status');
        let isCut = false;
        if (extend !== undefined) {
          if (name === undefined) throw new InvalidOptionError('name', 'extend needs the name of a browser.');
          ({ isCut } = this.#find(name).extend(timeOf(extend)));
        }
        const found = name === undefined ? this.#leased : [this.#find(name)];
        return { leases: found.map((browser) => this.#describe(browser)), ...(isCut && { notice: LATEST }) };
      },
    };
  }

  #release(): Tool {
    return {
      name: 'release_browser',
      description:
        'Releases a browser that lease_browser has leased: its pages and logins are removed, and its address no longer works. ' +
        'Returns the links of its recordings, if there are any. Call it when you no longer need the browser.',
      inputSchema: {
        type: 'object',
        properties: {
          name: { type: 'string', description: 'The name of the browser, as in lease_browser.' },
        },
        required: ['name'],
        additionalProperties: false,
      },
      annotations: { title: 'Release a browser', destructiveHint: true },
      run: async (given) => {
        const { name } = readOptions(releaseChecks, given, 'release_browser');
        const summary = await this.#find(name).end(RELEASED);
        if (!summary) return { name };
        const { released } = summary;
        return { name, released, replays: describeReplays(summary) };
      },
    };
  }

  get #leased(): ProxiedBrowser[] {
    return this.#proxy.named.filter(({ lease }) => lease !== undefined);
  }

  #find(name: string): ProxiedBrowser {
    const found = this.#leased.find((browser) => browser.name === name);
    if (found) return found;
    throw new InvalidOptionError('name', `You have no browser "${name}". ${this.#names()}`);
  }

  #names(): string {
    const names = this.#leased.map((browser) => `"${browser.name}"`);
    return names.length === 0 ? 'You have none at present.' : `You have: ${names.join(', ')}.`;
  }

  /** Refuses what waiting does not change. */
  #expectAllowed(name: string, lifetime: number | undefined): void {
    const { max = Infinity, lifetime: most } = this.#limits;
    if (lifetime !== undefined && lifetime > most)
      throw new InvalidOptionError(
        'lifetime',
        `lifetime can be ${words(most)} at most. lease_status can extend the lease later.`,
      );
    const own = this.#leased.find((browser) => browser.name === name);
    if (own)
      throw new InvalidOptionError(
        'name',
        `You have leased the browser "${name}" already: its cdpUrl is ${this.#urlOf(name)}. Use it, call release_browser first, or choose ` +
          'another name.',
      );
    if (this.#proxy.named.length < max) return;
    const limit = max === 1 ? '1 browser' : `${max} browsers`;
    throw new InvalidOptionError(
      'name',
      `You can lease ${limit} at once. ${this.#names()} Call release_browser for one of them.`,
    );
  }

  #urlOf(name: string): string {
    return `${this.#proxy.url.replace('http', 'ws')}/${name}`;
  }

  #describe({ name = '', lease, liveViewUrl, handoffs }: ProxiedBrowser): Record<string, unknown> {
    const { sessionId, age = 0, remaining = 0 } = lease ?? {};
    return {
      name,
      cdpUrl: this.#urlOf(name),
      handoffUrl: `${this.#proxy.url}/${name}/handoff`,
      ...(handoffs.last && { handoff: handoffs.last }),
      session: sessionId,
      ...(liveViewUrl !== undefined && { liveViewUrl }),
      age: words(age),
      remaining: words(remaining),
      end: new Date(Date.now() + remaining).toISOString(),
    };
  }

  /** Reports a wait to the host, which may show it, or wait for longer. */
  #showWait(notify: ToolCall['notify']): () => void {
    const { pool, acquireTimeout } = this.#limits;
    const began = clock.now();
    const show = () => {
      const seconds = Math.round((clock.now() - began) / 1000);
      const message = `Waiting for a browser of the pool ${pool}: ${seconds} s of ${words(acquireTimeout)}.`;
      // A host that has ended gets no message, and ends the call.
      notify({ progress: seconds, message }).catch(() => {});
    };
    show();
    const timer = clock.setInterval(show, PROGRESS);
    return () => clock.clearInterval(timer);
  }

  #explain(error: unknown): string {
    if (error instanceof AcquireTimeoutError) {
      const { waited } = error;
      return (
        `No browser of the pool ${this.#limits.pool} became free within ${words(waited)}. ${this.#names()} Call lease_browser again to wait ` +
        'longer, or call release_browser for a browser that you no longer need.'
      );
    }
    if (error instanceof Refusal) return `${error.message} Choose another name, or wait for the other call.`;
    if (isPooledBrowserError(error)) return redact(sentence(error.message));
    return `The call failed. ${redact(sentence(error instanceof Error ? error.message : String(error)))}`;
  }
}

const NAME =
  'Your name for the browser, such as "main": 1 to 64 letters, digits, ".", "_" and "-". Two names are two browsers.';
/** The model gets no URL of the page for the person: it could answer there itself. */
const ASK =
  'At a login, a captcha or a question that only a person can answer, ask for one: POST {"message": "…", "wait": false} as JSON to handoffUrl, say ' +
  'to the user that the link is in the log of this server (its stderr), and call lease_status until the status of handoff is no longer "waiting".';
const RELEASED = new Error('The browser was released with release_browser.');

function textOf(content: string): { type: 'text'; text: string } {
  return { type: 'text', text: content };
}

/** A time for a model: a lease lasts minutes, for which `duration` has no word. */
function words(milliseconds: number): string {
  const minutes = milliseconds / 60_000;
  if (minutes < 2) return duration(milliseconds);
  return `${Math.round(minutes * 10) / 10} minutes`;
}
