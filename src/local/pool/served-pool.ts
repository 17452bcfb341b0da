import type { LocalBrowser } from '../browser/local-browser.js';
import { openUrl } from '../browser/open-url.js';
import type { DestroyReason, LocalPoolStats, Log } from '../events.js';
import { closing, HttpFault } from '../http/answer.js';
import type { CheckedSettings } from '../settings.js';
import { memoryOfEach, thisMachine } from '../../shared/machine.js';
import type { Semaphore } from '../../shared/semaphore.js';
import { memoryOfGroup } from './browser-memory.js';
import { Filler } from './filler.js';
import {
  nameField,
  ServedBrowser,
  ServedLease,
  waitInQueue,
  type ServedLeaseEnd,
  type LeaseFields,
  type LeaseHistory,
  type Waiter,
} from './served-lease.js';

/** Milliseconds between two looks at the memory of a browser. */
const WEIGH_INTERVAL = 1000;

/** Starts a browser with the settings of a pool. */
export type LaunchBrowser = (
  settings: Pick<CheckedSettings, 'headless'> & Partial<CheckedSettings> & { readonly noUdp?: boolean },
  signal: AbortSignal,
) => Promise<LocalBrowser>;

interface SharedByPools {
  readonly launch: LaunchBrowser;
  /** WebRTC of no browser sends UDP packets: each one fits each request. */
  readonly neverUdp: boolean;
  readonly startLimit: Semaphore;
  readonly history: LeaseHistory;
  readonly log: Log;
  /** Whether a browser keeps its session id in the next lease. */
  readonly keepsSessionId: boolean;
  /** @returns The error for an acquire request whose name an active lease of any pool has. */
  readonly nameConflict: (name: string | undefined) => HttpFault | undefined;
}

/** One pool: its idle browsers, its leases, and its waiting acquire requests. */
export class ServedPool {
  readonly settings: CheckedSettings;
  readonly createdAt = new Date().toISOString();
  readonly #shared: SharedByPools;
  readonly #idle: ServedBrowser[] = [];
  readonly #leases = new Map<string, ServedLease>();
  /** The waiting acquire requests, in the order of their arrival. */
  readonly #queue = new Set<Waiter>();
  readonly #waits = new WaitHistory();
  readonly #filler: Filler;
  readonly #ending = new Set<Promise<void>>();
  /** Bytes that a browser may hold between two leases. */
  readonly #mostMemory: number;
  /** Whether each browser that starts has WebRTC without UDP, and whether the last request needed one. */
  readonly #starting: boolean[] = [];
  #lastNoUdp = false;
  #weighedAt = Number.NEGATIVE_INFINITY;
  readonly #totals = { granted: 0, released: 0, destroyed: 0, expired: 0 };
  #closed = false;

  constructor(settings: CheckedSettings, shared: SharedByPools) {
    this.settings = settings;
    this.#shared = shared;
    this.#mostMemory = memoryOfEach(thisMachine(), settings.size);
    this.#filler = new Filler({
      settings,
      limit: shared.startLimit,
      missing: () => this.#missing,
      start: (signal) => this.#start(signal),
      onStarted: (started) => this.#onStarted(started),
      onFailed: (error) => this.#onFailed(error),
    });
  }

  get stats(): LocalPoolStats {
    return {
      idle: this.#idle.length,
      leased: this.#leases.size,
      starting: this.#filler.starting,
      waiting: this.#queue.size,
      ...this.#totals,
    };
  }

  /** The leased browsers, then the idle ones in the order in which they are leased. */
  get browsers(): readonly ServedBrowser[] {
    return [...this.#leases.values()].map(({ browser }) => browser).concat(this.#idle);
  }

  get waiting(): Iterable<Waiter> {
    return this.#queue;
  }

  /** The longest wait in each ten seconds of the last ten minutes, in ms; the oldest first. */
  get waits(): readonly number[] {
    const [first] = this.#queue;
    return this.#waits.read(first ? performance.now() - first.since : 0);
  }

  get leases(): Iterable<ServedLease> {
    return this.#leases.values();
  }

  /** Starts the browsers. Settles with the first start. */
  fill(): Promise<void> {
    return this.#filler.fill();
  }

  lease(sessionId: string): ServedLease | undefined {
    return this.#leases.get(sessionId);
  }

  /** The browser of a session, idle or leased. */
  find(sessionId: string): ServedBrowser | undefined {
    const lease = this.#leases.get(sessionId);
    return lease?.browser ?? this.#idle.find((browser) => browser.sessionId === sessionId);
  }

  /** Leases a browser. @returns Undefined when no browser became available within `wait` ms. */
  async acquire(request: LeaseFields, wait: number, signal: AbortSignal): Promise<ServedLease | undefined> {
    if (this.#closed) throw closing();
    signal.throwIfAborted();
    const refusal = this.#shared.nameConflict(request.name) ?? this.#startFailure();
    if (refusal) throw refusal;
    this.#lastNoUdp = request.no_udp;
    if (!this.#idle.some((browser) => this.#fits(browser, request)) && wait > 0) {
      this.#shared.log({ type: 'waiting', pool: this.settings.name, ...nameField(request) });
    }
    const asked = performance.now();
    const lease = waitInQueue(this.#queue, request, wait, signal);
    this.#serveQueue();
    this.#filler.refill();
    return lease.finally(() => this.#waits.note(performance.now() - asked));
  }

  /** Releases a lease. @returns False when this pool has no such lease. */
  release(sessionId: string, reuse: boolean): boolean {
    const lease = this.#leases.get(sessionId);
    if (!lease) return false;
    this.#totals.released++;
    this.#shared.log({ type: 'released', pool: this.settings.name, sessionId, ...nameField(lease.request) });
    const { browser } = lease;
    if (!reuse) this.#destroy(browser, 'released');
    else if (this.#isWorn(browser)) this.#destroy(browser, 'replaced');
    else this.#putBack(lease, 'reused');
    return true;
  }

  /** Undoes a lease whose client never received the response. */
  undo(lease: ServedLease): void {
    if (lease.ended) return;
    this.#totals.granted--;
    this.#putBack(lease);
  }

  /** Destroys the idle browsers. Leased browsers stay. */
  flush(): void {
    for (const browser of this.#idle.slice()) this.#destroy(browser, 'flushed');
  }

  /** Destroys a browser, idle or leased. */
  delete(sessionId: string): void {
    const browser = this.find(sessionId);
    if (browser) this.#destroy(browser, 'deleted');
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const waiter of this.#queue) waiter.refuse(closing());
    const leased = [...this.leases].map(({ browser }) => browser);
    for (const browser of [...this.#idle, ...leased]) this.#destroy(browser, 'closed');
    await this.#filler.stop();
    await Promise.all(this.#ending);
  }

  /** A released browser has had enough leases, or still holds more memory than its share. A look at the memory takes milliseconds. */
  #isWorn({ leases, process: { pid } }: ServedBrowser): boolean {
    if (leases >= this.settings.maxLeases) return true;
    if (performance.now() - this.#weighedAt < WEIGH_INTERVAL) return false;
    this.#weighedAt = performance.now();
    return memoryOfGroup(pid) > this.#mostMemory;
  }

  /** With `onDemand`, the pool has a browser for each lease and each waiting request, and at least one. */
  get #missing(): number {
    const { size, onDemand } = this.settings;
    const wanted = onDemand ? Math.min(size, Math.max(1, this.#leases.size + this.#queue.size)) : size;
    return wanted - this.#idle.length - this.#leases.size;
  }

  /** In the order of the requests, so that none waits for ever beside those that the idle browsers fit. */
  #serveQueue(): void {
    let coming = Math.max(0, this.#missing);
    for (const waiter of this.#queue) {
      if (this.#idle.length === 0) return;
      const place = this.#idle.findIndex((browser) => this.#fits(browser, waiter.request));
      if (place === -1) {
        // Another browser starts in the place of this one.
        if (coming-- <= 0) this.#destroy(this.#idle[0]!, 'replaced');
        continue;
      }
      const conflict = this.#shared.nameConflict(waiter.request.name);
      if (conflict) waiter.refuse(conflict);
      else this.#grant(waiter, this.#idle.splice(place, 1)[0]!);
    }
  }

  /** A page may use the WebRTC of a lease without a limit. */
  #fits({ noUdp }: ServedBrowser, { no_udp: isNeeded }: LeaseFields): boolean {
    return this.#shared.neverUdp || noUdp === isNeeded;
  }

  /** What the first waiting request needs for which no browser starts; else the last request. */
  get #nextNoUdp(): boolean {
    const starting = [...this.#starting];
    for (const { request } of this.#queue) {
      const place = starting.indexOf(request.no_udp);
      if (place === -1) return request.no_udp;
      starting.splice(place, 1);
    }
    return this.#lastNoUdp;
  }

  #grant({ request, grant }: Waiter, browser: ServedBrowser): void {
    const { name: pool, timeoutSeconds } = this.settings;
    const { sessionId } = browser;
    const lease = new ServedLease(browser, request, timeoutSeconds * 1000, () => {
      this.#totals.expired++;
      this.#destroy(browser, 'inactive');
    });
    this.#leases.set(sessionId, lease);
    browser.leases++;
    this.#totals.granted++;
    this.#shared.log({ type: 'leased', pool, sessionId, ...nameField(request) });
    grant(lease);
  }

  /** @param outcome Undefined for a lease that no client received. */
  #putBack(lease: ServedLease, outcome?: ServedLeaseEnd): void {
    const { browser } = lease;
    this.#leases.delete(browser.sessionId);
    if (outcome) this.#shared.history.add(this.settings.name, lease, outcome);
    lease.end();
    if (!this.#shared.keepsSessionId) browser.renewSession();
    browser.idleSince = performance.now();
    this.#idle.push(browser);
    this.#serveQueue();
  }

  #destroy(browser: ServedBrowser, reason: DestroyReason): void {
    const { sessionId, process } = browser;
    const lease = this.#leases.get(sessionId);
    const place = this.#idle.indexOf(browser);
    if (place !== -1) this.#idle.splice(place, 1);
    else if (!this.#leases.delete(sessionId)) return;
    if (lease) this.#shared.history.add(this.settings.name, lease, reason);
    lease?.end();
    this.#totals.destroyed++;
    this.#shared.log({ type: 'browser-destroyed', pool: this.settings.name, sessionId, reason });
    this.#kill(process);
    if (!this.#closed) this.#filler.refill();
  }

  #kill(started: LocalBrowser): void {
    const ending = started.kill().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  async #start(signal: AbortSignal): Promise<ServedBrowser> {
    const noUdp = this.#nextNoUdp;
    this.#starting.push(noUdp);
    try {
      const started = await this.#shared.launch({ ...this.settings, noUdp }, signal);
      const { startUrl } = this.settings;
      if (startUrl !== undefined) await openUrl(started, startUrl, signal);
      return new ServedBrowser(started, noUdp);
    } finally {
      this.#starting.splice(this.#starting.indexOf(noUdp), 1);
    }
  }

  #onStarted(browser: ServedBrowser): void {
    const { process: started } = browser;
    if (this.#closed) return this.#kill(started);
    void started.exited.then(() => this.#destroy(browser, 'exited'));
    const { sessionId } = browser;
    this.#shared.log({ type: 'browser-started', pool: this.settings.name, sessionId, pid: started.pid });
    this.#idle.push(browser);
    this.#serveQueue();
  }

  #onFailed(error: Error): void {
    this.#shared.log({ type: 'browser-start-failed', pool: this.settings.name, message: error.message });
    const failure = this.#startFailure();
    if (failure) for (const waiter of this.#queue) waiter.refuse(failure);
  }

  /** The error of a pool without browsers whose last start failed. Waiting would only hide the reason. */
  #startFailure(): HttpFault | undefined {
    const { failure } = this.#filler;
    if (!failure || this.#idle.length + this.#leases.size > 0) return undefined;
    const inner_error = { code: 'browser_start_failed', message: failure.message };
    return new HttpFault(500, 'internal_error', 'No browser could be started.', { inner_error });
  }
}

/** Milliseconds that one value of the history stands for. */
const SLOT = 10_000;

/** Number of values: ten minutes. */
const SLOTS = 60;

/** How long acquire requests waited during the last ten minutes. */
class WaitHistory {
  /** The longest wait in each slot, in ms. */
  readonly #longest = new Map<number, number>();

  /** Adds a wait that has just ended. */
  note(milliseconds: number): void {
    const now = currentSlot();
    this.#longest.set(now, Math.max(milliseconds, this.#longest.get(now) ?? 0));
    for (const slot of this.#longest.keys()) if (slot <= now - SLOTS) this.#longest.delete(slot);
  }

  /**
   * Returns the longest wait in each ten seconds, in ms; the oldest first.
   *
   * @param longestNow Milliseconds that the first request in the queue has waited so far, or 0.
   */
  read(longestNow: number): readonly number[] {
    const first = currentSlot() - SLOTS + 1;
    const waits = Array.from({ length: SLOTS }, (_, index) => this.#longest.get(first + index) ?? 0);
    return waits.with(SLOTS - 1, Math.max(longestNow, waits.at(-1)!)).map(Math.round);
  }
}

function currentSlot(): number {
  return Math.floor(performance.now() / SLOT);
}
