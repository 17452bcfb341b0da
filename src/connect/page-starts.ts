import { raceTimeout } from '../shared/abort.js';

/** Milliseconds in which a client must let a page go on. */
const LONGEST = 5000;

/** Of the targets to which a client attaches by itself. */
type Filter = readonly { readonly type?: string | undefined; readonly exclude?: boolean | undefined }[];

/** As in Chromium. */
const USUAL: Filter = [{ type: 'browser', exclude: true }, { type: 'tab', exclude: true }, {}];

interface Party {
  /** By the session in which it attaches. */
  readonly filters: Map<string, Filter>;
  /** The pages that may go on. */
  readonly ready: Set<string>;
}

/**
 * Lets new pages wait for several clients, and go on once. In Chromium, each client that waits must let a page go on, and the command of
 * one client, which arrives late, lets another new page of the process go on that is not ready.
 */
export class PageStarts {
  /** One client lets all pages wait, and go on, and the others must not. */
  isHeld = false;
  readonly #parties = new Map<object, Party>();
  readonly #waiting = new Set<string>();
  #checks = new Set<() => void>();

  /**
   * A client attaches to new pages, and lets them wait.
   *
   * @param filter Undefined to end it.
   * @returns Whether the client is new: `leave` must follow when it has gone.
   */
  attach(client: object, session: string, filter: Filter | undefined): boolean {
    const isNew = !this.#parties.has(client);
    const party = this.#parties.get(client) ?? { filters: new Map<string, Filter>(), ready: new Set() };
    this.#parties.set(client, party);
    if (filter) party.filters.set(session, filter);
    else party.filters.delete(session);
    this.#check();
    return isNew;
  }

  isWaiting(targetId: string): boolean {
    return this.#waiting.has(targetId);
  }

  /** A client lets a page go on. */
  ready(client: object, targetId: string): void {
    if (this.#waiting.has(targetId)) this.#parties.get(client)?.ready.add(targetId);
    this.#check();
  }

  /** A client has gone. */
  leave(client: object): void {
    this.#parties.delete(client);
    this.#check();
  }

  /** A page has begun to wait. */
  begin(targetId: string): void {
    this.#waiting.add(targetId);
  }

  /** Resolves when all clients let a page go on. */
  async settled(targetId: string, type: string): Promise<void> {
    const isReady = ({ filters, ready }: Party) =>
      ready.has(targetId) || ![...filters.values()].some((filter) => admits(filter, type));
    const isSettled = () => [...this.#parties.values()].every(isReady);
    const wait = async () => {
      while (!isSettled()) await new Promise<void>((resolve) => this.#checks.add(resolve));
    };
    if (!isSettled()) await raceTimeout(LONGEST, wait, () => new Error('late')).catch(() => {});
    this.end(targetId);
  }

  /** A page goes on, or is closed. */
  end(targetId: string): void {
    this.#waiting.delete(targetId);
    for (const { ready } of this.#parties.values()) ready.delete(targetId);
    this.#check();
  }

  #check(): void {
    const checks = this.#checks;
    this.#checks = new Set();
    for (const check of checks) check();
  }
}

/** The filter that Chromium uses if a client names none. */
export function filterOf(given: Filter | undefined): Filter {
  return given ?? USUAL;
}

function admits(filter: Filter, type: string): boolean {
  const admitsType = (one: string) => {
    const entry = filter.find((each) => each.type === undefined || each.type === one);
    return entry !== undefined && entry.exclude !== true;
  };
  // A client can also attach to the tab of a page, and then to the page.
  return admitsType(type) || (type === 'page' && admitsType('tab'));
}
