import { FIRST_ID, type CdpPort, type Message, type WireMessage } from './forms.js';
import {
  BrowserFault,
  contentOf,
  isRead,
  MalformedMessage,
  NoAnswer,
  readEvent,
  readResult,
  type EventName,
  type EventParams,
  type ResultOf,
} from './message.js';
import { raceTimeout } from '../shared/abort.js';
import { duration } from '../shared/errors.js';

export type { OpenCdp, OwnClient } from './forms.js';

/** A page, a frame of another site, or a worker. */
export type Target = ResultOf<'Target.getTargets'>['targetInfos'][number];

/** What receives the events of a browser, by their names. An event that does not fit its name is dropped. */
export type EventListeners = {
  readonly [Name in EventName]?: (params: EventParams<Name>, sessionId: string | undefined) => void;
};

/**
 * Our client of the Chrome DevTools Protocol, and of WebDriver BiDi, for what needs no automation library. It reads each event and result
 * before anybody uses it: a browser can send anything.
 */
export class CdpClient {
  /** Resolves when the connection has ended. */
  readonly ended: Promise<unknown>;
  readonly #port: CdpPort;
  readonly #timeout: number;
  #hasEnded = false;
  readonly #nextId = idsOfOurs();

  /** @param timeout Milliseconds after which `send` rejects without an answer. Default: none. */
  constructor(port: CdpPort, listeners: EventListeners = {}, timeout = Infinity) {
    this.#port = port;
    this.ended = port.ended;
    this.#timeout = timeout;
    port.listen((event) => readFor(listeners, event));
    void port.ended.then(() => (this.#hasEnded = true));
  }

  /** Sends a command. Rejects if it fails, if its result is not what the protocol says, or if its session or the connection ends. */
  async send<Method extends string>(
    method: Method,
    params: object = {},
    sessionId?: string,
  ): Promise<ResultOf<Method>> {
    const { id, result, settle } = this.#begin(method);
    const late = () => new Error(`The browser did not respond within ${duration(this.#timeout)}.`);
    this.#port.request({ id, method, params: params as Message['params'], sessionId }, settle);
    return (await raceTimeout(this.#timeout, () => result, late)) as ResultOf<Method>;
  }

  /**
   * Sends a command whose last parameter is a text of base64, which can be large: over a connection of its own, the whole
   * message never exists at once. The parts are dropped as they are sent.
   */
  async sendWithBody(method: string, params: object, name: string, body: Buffer[]): Promise<void> {
    const size = body.reduce((sum, { length }) => sum + length, 0);
    if (!this.#port.requestParts || size < LARGE) {
      await this.send(method, { ...params, [name]: Buffer.concat(body).toString('base64') });
      return;
    }
    const { id, result, settle } = this.#begin(method);
    const [head, tail] = JSON.stringify({ id, method, params: { ...params, [name]: '' } }).split(
      /(?<=")(?="\}\}$)/,
    );
    this.#port.requestParts({ id, method }, partsOf(head!, body, tail!), settle);
    await result;
  }

  /** Ends the client. The browser then undoes what it set up, and resumes what it paused. */
  close(): void {
    this.#port.close();
  }

  /** Lists the targets of the browser. */
  async targets(): Promise<readonly Target[]> {
    return (await this.send('Target.getTargets')).targetInfos;
  }

  /** Opens a blank page. Resolves to the id of its target. */
  async openPage(options: object = {}): Promise<string> {
    return (await this.send('Target.createTarget', { url: 'about:blank', ...options })).targetId;
  }

  /** Opens a session of a target. Resolves to its id. */
  async attach(targetId: string): Promise<string> {
    return (await this.send('Target.attachToTarget', { targetId, flatten: true })).sessionId;
  }

  #begin(method: string) {
    if (this.#hasEnded) throw new NoAnswer();
    const id = this.#nextId();
    let settle!: (response: WireMessage | undefined) => void;
    const result = new Promise<unknown>((resolve, reject) => {
      settle = (response) => {
        if (response === undefined) return reject(new NoAnswer());
        const { error, result: given } = contentOf(response);
        if (error !== undefined) return reject(new BrowserFault(response));
        resolve(Promise.resolve(given ?? {}).then((one) => readResult(method, one)));
      };
    });
    return { id, result, settle };
  }
}

/** An event that does not fit its name is dropped. */
function readFor(listeners: EventListeners, event: WireMessage): void {
  const { method, sessionId } = event;
  const listener = isRead(method) && listeners[method];
  if (!listener) return;
  try {
    (listener as (...of: unknown[]) => void)(readEvent(method, contentOf(event).params), sessionId);
  } catch (error) {
    if (!(error instanceof MalformedMessage)) throw error;
  }
}

/**
 * Returns the ids of a client of our own, one after the other: the numbers of 30 bits, shuffled with random keys. No id comes twice, and
 * no other client of the connection can guess one and give it to a command of its own, whose response would be taken for ours.
 */
function idsOfOurs(): () => number {
  const keys = globalThis.crypto.getRandomValues(new Uint32Array(4));
  let count = 0;
  return () => {
    const number = ++count % FIRST_ID;
    let [high, low] = [number >>> 15, number & HALF];
    // A Feistel network: each round can be undone, so that two numbers never become one.
    for (const key of keys) [high, low] = [low, high ^ ((Math.imul(low ^ key, MIX) ^ key) >>> 17)];
    return FIRST_ID + high * (HALF + 1) + low;
  };
}

const HALF = 2 ** 15 - 1;
/** An odd number whose product mixes the bits. */
const MIX = 0x9e3779b1;

/** A session of a client with one page. */
export class CdpSession {
  readonly id: string;
  readonly #cdp: CdpClient;

  constructor(cdp: CdpClient, id: string) {
    this.#cdp = cdp;
    this.id = id;
  }

  ask<Method extends string>(method: Method, params?: object): Promise<ResultOf<Method>> {
    return this.#cdp.send(method, params, this.id);
  }

  /** Sends a command, and ignores a failure: the page is closing. */
  send(method: string, params?: object): void {
    this.ask(method, params).catch(() => {});
  }

  /** Ends the session, and what it set up in the page. */
  detach(): void {
    this.#cdp.send('Target.detachFromTarget', { sessionId: this.id }).catch(() => {});
  }
}

/** Size in bytes of a body from which it is sent in parts, and of a part. Bytes in threes need no padding. */
const LARGE = 3 * 1024 * 1024;
const PART = 3 * 256 * 1024;

function* partsOf(head: string, body: Buffer[], tail: string): Iterable<Buffer> {
  yield Buffer.from(head);
  let waiting: Buffer[] = [];
  let size = 0;
  while (body.length > 0) {
    const next = body.shift()!;
    waiting.push(next);
    size += next.length;
    if (size < PART) continue;
    const bytes = Buffer.concat(waiting);
    const end = size - (size % 3);
    yield Buffer.from(bytes.toString('base64', 0, end), 'latin1');
    waiting = [bytes.subarray(end)];
    size -= end;
  }
  yield Buffer.from(Buffer.concat(waiting).toString('base64') + tail);
}
