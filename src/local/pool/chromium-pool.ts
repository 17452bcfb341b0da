import type { Chromium } from '../browser/chromium.js';
import { openUrl } from '../browser/open-url.js';
import type { CheckedSettings } from '../options/check-pools.js';
import type { DestroyReason, Log } from '../events.js';
import { closing, HttpFault } from '../http/http-fault.js';
import type { LocalPoolStats } from '../local-pool.js';
import { Filler } from './filler.js';
import { Lease, type LeaseRequest } from './lease.js';
import { PoolLog } from './pool-log.js';
import { PooledChromium } from './pooled-chromium.js';
import type { StartLimit } from './start-limit.js';
import { WaitQueue, type Waiter } from './wait-queue.js';

/** What all pools of a server share. */
export interface PoolSurroundings {
  readonly launch: (settings: CheckedSettings, signal: AbortSignal) => Promise<Chromium>;
  readonly limit: StartLimit;
  readonly log: Log;
  /** The refusal, when an active lease of any pool has this name. */
  readonly nameConflict: (name: string) => HttpFault | undefined;
  readonly keepsSessionId: boolean;
}

/** One pool: its idle browsers, its leases, and who waits for one. */
export class ChromiumPool {
  readonly settings: CheckedSettings;
  readonly createdAt = new Date().toISOString();
  /** How the first start of a browser went. */
  readonly firstStart: Promise<void>;
  readonly #idle: PooledChromium[] = [];
  readonly #leases = new Map<string, Lease>();
  readonly #queue = new WaitQueue();
  readonly #filler: Filler;
  readonly #around: PoolSurroundings;
  readonly #log: PoolLog;
  readonly #ending = new Set<Promise<void>>();
  readonly #totals = { granted: 0, released: 0, destroyed: 0, expired: 0 };
  #settleFirstStart!: (error?: Error) => void;
  #closed = false;

  constructor(settings: CheckedSettings, around: PoolSurroundings) {
    this.settings = settings;
    this.#around = around;
    this.#log = new PoolLog(settings.name, around.log);
    this.firstStart = new Promise((resolve, reject) => {
      this.#settleFirstStart = (error) => (error ? reject(error) : resolve());
    });
    this.firstStart.catch(() => {});
    const { size, fillRatePerMinute } = settings;
    const host = {
      size,
      fillRatePerMinute,
      present: () => this.#idle.length + this.#leases.size,
      start: (signal: AbortSignal) => this.#start(signal),
      onStarted: (chromium: Chromium) => this.#onStarted(chromium),
      onFailed: (error: Error) => this.#onFailed(error),
    };
    this.#filler = new Filler(host, around.limit);
  }

  get stats(): LocalPoolStats {
    return {
      idle: this.#idle.length,
      leased: this.#leases.size,
      starting: this.#filler.starting,
      waiting: this.#queue.length,
      ...this.#totals,
    };
  }

  /** The idle browsers, the next to be leased first. */
  get idle(): Iterable<PooledChromium> {
    return this.#idle;
  }

  /** Who waits for a browser. */
  get waiting(): Iterable<Waiter> {
    return this.#queue;
  }

  /** The active leases. */
  get leases(): Iterable<Lease> {
    return this.#leases.values();
  }

  fill(): void {
    this.#filler.fill();
  }

  /** The active lease of a session. */
  lease(sessionId: string): Lease | undefined {
    return this.#leases.get(sessionId);
  }

  has(sessionId: string): boolean {
    return this.#leases.has(sessionId) || this.#idle.some((browser) => browser.sessionId === sessionId);
  }

  /** Leases a browser, waiting for one so many milliseconds; nothing when none became available. */
  async acquire(request: LeaseRequest, wait: number, signal: AbortSignal): Promise<Lease | undefined> {
    if (this.#closed) throw closing();
    signal.throwIfAborted();
    const conflict = request.name === undefined ? undefined : this.#around.nameConflict(request.name);
    if (conflict) throw conflict;
    const failure = this.#hopeless();
    if (failure) throw failure;
    if (this.#idle.length === 0 && wait > 0) this.#log.waiting(request);
    const lease = this.#queue.wait(request, wait, signal);
    this.#serve();
    return lease;
  }

  /** Gives a browser back. False when this pool has no such lease. */
  release(sessionId: string, reuse: boolean): boolean {
    const lease = this.#leases.get(sessionId);
    if (!lease) return false;
    this.#totals.released++;
    this.#log.released(sessionId);
    if (reuse) this.#putBack(lease);
    else this.#destroy(lease.browser, 'released');
    return true;
  }

  /** Undoes a grant of which its client never heard. */
  takeBack(lease: Lease): void {
    if (lease.ended) return;
    this.#totals.granted--;
    this.#putBack(lease);
  }

  /** Destroys the idle browsers; leased ones are spared (interface: flush). */
  flush(): void {
    for (const browser of this.#idle.slice()) this.#destroy(browser, 'flushed');
  }

  /** Destroys a browser, idle or leased. False when this pool has no such session. */
  delete(sessionId: string): boolean {
    const browser = this.#find(sessionId);
    if (browser) this.#destroy(browser, 'deleted');
    return browser !== undefined;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#queue.refuseAll(closing());
    const leased = [...this.leases].map(({ browser }) => browser);
    for (const browser of [...this.#idle, ...leased]) this.#destroy(browser, 'closed');
    await this.#filler.stop();
    await Promise.all(this.#ending);
  }

  #find(sessionId: string): PooledChromium | undefined {
    return (
      this.#leases.get(sessionId)?.browser ?? this.#idle.find((browser) => browser.sessionId === sessionId)
    );
  }

  #serve(): void {
    for (let waiter = this.#queue.first; waiter && this.#idle.length > 0; waiter = this.#queue.first) {
      const { name } = waiter.request;
      const conflict = name === undefined ? undefined : this.#around.nameConflict(name);
      if (conflict) waiter.refuse(conflict);
      else this.#grant(waiter, this.#idle.shift()!);
    }
  }

  #grant({ request, grant }: Waiter, browser: PooledChromium): void {
    const timeout = this.settings.timeoutSeconds * 1000;
    const lease = new Lease(browser, request, timeout, () => this.#expire(browser));
    this.#leases.set(browser.sessionId, lease);
    this.#totals.granted++;
    this.#log.leased(browser.sessionId, request);
    grant(lease);
  }

  #putBack(lease: Lease): void {
    const { browser } = lease;
    this.#leases.delete(browser.sessionId);
    lease.end();
    if (!this.#around.keepsSessionId) browser.renewSession();
    browser.idleSince = performance.now();
    this.#idle.push(browser);
    this.#serve();
  }

  #expire(browser: PooledChromium): void {
    this.#totals.expired++;
    this.#destroy(browser, 'inactive');
  }

  #destroy(browser: PooledChromium, reason: DestroyReason): void {
    const { sessionId, chromium } = browser;
    const lease = this.#leases.get(sessionId);
    const place = this.#idle.indexOf(browser);
    if (place !== -1) this.#idle.splice(place, 1);
    else if (!this.#leases.delete(sessionId)) return;
    lease?.end();
    this.#totals.destroyed++;
    this.#log.destroyed(sessionId, reason);
    this.#end(chromium);
    if (!this.#closed) this.#filler.refill();
  }

  #end(chromium: Chromium): void {
    const ending = chromium.kill().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  async #start(signal: AbortSignal): Promise<Chromium> {
    const chromium = await this.#around.launch(this.settings, signal);
    const { startUrl } = this.settings;
    if (startUrl !== undefined) await openUrl(chromium, startUrl, signal);
    return chromium;
  }

  #onStarted(chromium: Chromium): void {
    if (this.#closed) return this.#end(chromium);
    const browser = new PooledChromium(chromium);
    void chromium.exited.then(() => this.#destroy(browser, 'exited'));
    this.#log.started(browser.sessionId, chromium.pid);
    this.#idle.push(browser);
    this.#settleFirstStart();
    this.#serve();
  }

  #onFailed(error: Error): void {
    this.#log.startFailed(error);
    this.#settleFirstStart(error);
    const failure = this.#hopeless();
    if (failure) this.#queue.refuseAll(failure);
  }

  /** With no browser and none that can be started, waiting would only hide why. */
  #hopeless(): HttpFault | undefined {
    const { failure } = this.#filler;
    if (!failure || this.#idle.length + this.#leases.size > 0) return undefined;
    const inner_error = { code: 'browser_start_failed', message: failure.message };
    return new HttpFault(500, 'internal_error', 'No browser could be started.', { inner_error });
  }
}
