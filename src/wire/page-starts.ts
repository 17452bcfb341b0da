import { raceTimeout } from '../shared/abort.js';

/** Milliseconds in which a client must let a target go on. */
const LONGEST = 5000;

/** Which targets a client attaches to by itself. */
type Filter = readonly { readonly type?: string | undefined; readonly exclude?: boolean | undefined }[];

/** The filter that Chromium uses if a client names none. */
const USUAL: Filter = [{ type: 'browser', exclude: true }, { type: 'tab', exclude: true }, {}];

interface AttachedClient {
  /** The filters of a client, by the session in which it attaches. */
  readonly filters: Map<string, { readonly filter: Filter; readonly below: string | undefined }>;
  /** The targets that may go on. */
  readonly ready: Set<string>;
  readonly preparesAgain: boolean;
}

/** A target that waits. */
interface Starting {
  readonly targetId: string;
  readonly type: string;
  /** The page that has opened this one. */
  readonly openerId?: string | undefined;
  /** It was stopped, and is the same target. */
  readonly isAgain?: boolean;
}

/** Where a client attaches. */
interface Attaching {
  /** The id of the page, frame or worker below which it attaches. Undefined for the whole browser. */
  readonly below?: string | undefined;
  /** Whether new targets wait for it. Default: true. */
  readonly waits?: boolean | undefined;
  /** Default: as in Chromium. */
  readonly filter?: Filter | undefined;
  /** Resolves when the browser has done it. */
  readonly done?: Promise<unknown> | undefined;
  /** The client also prepares a service worker that begins again. A library does not. Default: false. */
  readonly preparesAgain?: boolean;
}

/**
 * Lets new pages, frames and workers wait for several clients, and go on once. In Chromium, the command of any client that lets one of them
 * go on lets each new page of the same process go on, also one that is not ready.
 */
export class PageStarts {
  /** One client lets all targets wait, and go on, and the others must not. */
  isManaged = false;
  /** Set by that client: called with the id of a target below which another client has attached. */
  onAttached: (targetId: string) => Promise<unknown> = async () => {};
  readonly #clients = new Map<object, AttachedClient>();
  readonly #waiting = new Set<string>();
  /** The number of clients that are attaching below a target. */
  readonly #attaching = new Map<string, number>();
  #checks = new Set<() => void>();

  /**
   * A client attaches to new targets.
   *
   * @returns Whether the client is new: `leave` must follow when it has gone.
   */
  attach(
    client: object,
    session: string,
    { waits = true, filter = USUAL, below, done, preparesAgain = false }: Attaching,
  ): boolean {
    const isNew = !this.#clients.has(client);
    const attached: AttachedClient = this.#clients.get(client) ?? {
      filters: new Map(),
      ready: new Set(),
      preparesAgain,
    };
    this.#clients.set(client, attached);
    if (waits) attached.filters.set(session, { filter, below });
    else attached.filters.delete(session);
    if (below !== undefined) void this.#attach(below, done);
    this.#check();
    return isNew;
  }

  async #attach(below: string, done: Promise<unknown> | undefined): Promise<void> {
    this.#attaching.set(below, (this.#attaching.get(below) ?? 0) + 1);
    await Promise.resolve(done)
      .then(() => this.onAttached(below))
      // It may be closed.
      .catch(() => {});
    const left = this.#attaching.get(below)! - 1;
    if (left > 0) this.#attaching.set(below, left);
    else this.#attaching.delete(below);
    this.#check();
  }

  isWaiting(targetId: string): boolean {
    return this.#waiting.has(targetId);
  }

  /** A client lets a target go on. */
  ready(client: object, targetId: string): void {
    this.#clients.get(client)?.ready.add(targetId);
    this.#check();
  }

  /** A session of a client has ended. */
  detached(client: object, session: string): void {
    if (this.#clients.get(client)?.filters.delete(session)) this.#check();
  }

  /** A client has gone. */
  leave(client: object): void {
    this.#clients.delete(client);
    this.#check();
  }

  /** A target has begun to wait. */
  begin(targetId: string): void {
    this.#waiting.add(targetId);
  }

  /**
   * Resolves when all clients let a target go on.
   *
   * @param below The page, frame or worker to which it belongs.
   */
  async settled({ targetId, type, openerId, isAgain }: Starting, below?: string): Promise<void> {
    const isReady = ({ filters, ready, preparesAgain }: AttachedClient) =>
      (isAgain && !preparesAgain) ||
      ready.has(targetId) ||
      ![...filters.values()].some((one) => one.below === below && admits(one.filter, type));
    // A page that a client opens is blank, and has no frames yet.
    const mayHaveFrames = type !== 'page' || openerId !== undefined;
    const isSettled = () =>
      !(mayHaveFrames && this.#attaching.has(targetId)) && [...this.#clients.values()].every(isReady);
    const wait = async () => {
      while (!isSettled()) await new Promise<void>((resolve) => this.#checks.add(resolve));
    };
    if (!isSettled()) await raceTimeout(LONGEST, wait, () => new Error('late')).catch(() => {});
    this.end(targetId);
  }

  /** A target goes on, or is closed. */
  end(targetId: string): void {
    this.#waiting.delete(targetId);
    for (const { ready } of this.#clients.values()) ready.delete(targetId);
    this.#check();
  }

  #check(): void {
    const checks = this.#checks;
    this.#checks = new Set();
    for (const check of checks) check();
  }
}

function admits(filter: Filter, type: string): boolean {
  const admitsType = (one: string) => {
    const entry = filter.find((each) => each.type === undefined || each.type === one);
    return entry !== undefined && entry.exclude !== true;
  };
  // A client can also attach to the tab of a page, and then to the page.
  return admitsType(type) || (type === 'page' && admitsType('tab'));
}
