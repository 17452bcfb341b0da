import { getEventListeners } from 'node:events';
import type { LeaseFacts, PooledBrowser, ReleaseChoice, Run, RunEvent, RunSummary } from '../../src/index.js';
import type { PoolEvent } from '../../src/pool/events.js';
import { simulatedConnector, type SimulatedHandles } from './simulated-connector.js';
import { callOf } from './simulated-replays.js';
import type { SimulatedPool } from './simulated-services.js';
import type { SimulatedService } from './simulated-service.js';
import type { World } from './world.js';

/** How a caller uses the library. */
export type Way = 'run' | 'lease' | 'agent' | 'handover' | 'acquire' | 'nested' | 'map';

/** Milliseconds that a call may take beyond the sum of its timeouts. */
const GRACE = 1000;
/** Timeouts that are not options: of the artifacts, the cleanup and the disconnect, and a second of tolerance. */
const TEARDOWN = 15_000 + 5000 + 2000 + 1000;

/** One lifecycle: a call of the library with random options, a callback, perhaps an abort, and the reported results. */
export class Caller {
  readonly number: number;
  readonly way: Way;
  /** Session ids that the library reported as not released, and those that were left on purpose. */
  readonly excused = new Set<string>();
  /** Number of requests that were reported with an unknown outcome. */
  unknown = 0;
  isSettled = false;
  readonly #world: World;
  readonly #service: SimulatedService;
  readonly #pool: SimulatedPool;
  readonly #controller = new AbortController();
  readonly #options: ReturnType<typeof drawOptions>;
  #abortedAt = Number.POSITIVE_INFINITY;
  #heldFor = 0;
  #mayLackReplays = false;
  #callbacks = 0;

  constructor(
    number: number,
    way: Way,
    parts: { world: World; service: SimulatedService; pool: SimulatedPool },
  ) {
    this.number = number;
    this.way = way;
    this.#world = parts.world;
    this.#service = parts.service;
    this.#pool = parts.pool;
    this.#options = drawOptions(parts.world);
    this.#service.uses.set(number, this.#options);
  }

  /** Runs the call and checks its duration. Never rejects. */
  async live(): Promise<void> {
    const { clock, random } = this.#world;
    await clock.sleep(random.between(0, 3000));
    if (this.#world.strikes('caller: aborts'))
      clock.after(random.between(0, random.pick([100, 3000, 60_000])), () => this.abort());
    const began = clock.now;
    const stopWatching = clock.after(4 * 3_600_000, () => this.#violate('never settled'));
    const outcome = await this.#call().then(
      (value) => ({ status: 'ok', value }),
      (error: unknown) => ({ status: 'failed', error }),
    );
    stopWatching();
    this.isSettled = true;
    if ('error' in outcome && outcome.error instanceof this.#world.library.api.InvalidOptionError)
      this.#violate(`could not begin: ${outcome.error.message}`);
    this.#world.tell(
      `call ${this.number} ${this.way} ${outcome.status} ${'error' in outcome ? String(outcome.error) : ''}`,
    );
    // A job takes as long as its tasks.
    if (this.way !== 'map') this.#checkTime(began);
    const listeners = getEventListeners(this.#controller.signal, 'abort').length;
    if (listeners > 0 && this.#abortedAt === Number.POSITIVE_INFINITY && !this.#mayStillListen) {
      this.#violate(`left ${listeners} listeners on the caller's signal`);
    }
  }

  async #call(): Promise<void> {
    if (this.way === 'acquire') return this.#acquire();
    if (this.way === 'lease') return this.#lease();
    if (this.way === 'agent') return this.#agent();
    if (this.way === 'handover') return this.#handOver();
    if (this.way === 'map') return this.#map();
    return this.#run();
  }

  /** `withPooledBrowser`: the callback returns, throws, hangs, closes the browser, or leases another one. */
  async #run(): Promise<void> {
    const thrown = this.#world.strikes('callback: throws undefined')
      ? undefined
      : new Error('the callback failed');
    let lostBefore = false;
    let isReturned = false;
    const callback = async (lease: SimulatedHandles & LeaseFacts<object>) => {
      if (++this.#callbacks > 1) this.#violate('called its callback twice');
      if (this.isSettled) this.#violate('called its callback after it had settled');
      await this.#work(lease, thrown);
      lostBefore = lease.socket.isOver;
      isReturned = true;
      return this.number;
    };
    try {
      const run = await this.#world.library.api.withPooledBrowser(this.#pool, callback, this.#leaseOptions());
      if (!isReturned) this.#violate('succeeded before its callback');
      this.#checkRun(run, lostBefore);
    } catch (error) {
      if (isReturned && !lostBefore && error === thrown && thrown)
        this.#violate('failed with an error that was not thrown');
      throw error;
    }
  }

  async #work(
    { socket, touch, signal }: SimulatedHandles & LeaseFacts<object>,
    thrown: unknown,
  ): Promise<void> {
    const { clock, random } = this.#world;
    if (random.chance(0.1)) return;
    touch();
    if (this.#world.strikes('callback: works on after its end'))
      for (let step = 0; step < 50; step++) clock.after(random.between(0, 8000), touch);
    await clock.sleep(random.between(1, 2000));
    if (this.way === 'nested' && !signal.aborted) await this.#nest(signal);
    if (this.#world.strikes('callback: throws')) throw thrown;
    if (this.#world.strikes('callback: closes the browser')) socket.close('closed-by-callback');
    if (this.#options.timeout !== undefined && this.#world.strikes('callback: hangs'))
      await new Promise(() => {});
  }

  async #nest(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#world;
    const callback = () => clock.sleep(random.between(1, 500));
    const options = { ...this.#leaseOptions(), signal, acquireTimeout: 5000 };
    this.#heldFor += 5000 + this.#limits;
    await this.#world.library.api.withPooledBrowser(this.#pool, callback, options).catch(() => {});
  }

  #checkRun(run: Run<number, object>, lostBefore: boolean): void {
    if (run.value !== this.number) this.#violate('succeeded without its value');
    if (lostBefore) this.#violate('succeeded although its browser was lost');
    if (['failed', 'left', 'unknown'].includes(run.released)) this.excused.add(idOf(run.session));
    if (run.unknownAcquires !== this.unknown && this.way !== 'nested')
      this.#violate('counted unknown outcomes wrongly');
    if (this.#abortedAt < this.#world.clock.now) this.#violate('succeeded although it was aborted');
    this.#checkReplays(run);
  }

  /** A link to the recording of another lease would reveal its content. */
  #checkReplays({ replays, replayStatus, session }: RunSummary<object>): void {
    const { grants, sendsDates } = this.#service;
    const grant = grants.findLast((one) => one.call === this.number && one.sessionId === idOf(session));
    const own = grant?.ownReplay;
    // A nested call can lease the same session again, and another process lists anew.
    const isOnly = this.way !== 'nested' && this.way !== 'handover';
    const isListed = ['ready', 'pending', 'none'].includes(replayStatus);
    if (own !== undefined && sendsDates && !this.#mayLackReplays && isListed && isOnly)
      if (replays.every((replay) => replay.replay_id !== own))
        this.#violate('did not return its own recording');
    const list = this.way === 'handover' ? 'first' : 'last';
    const foreign = replays.filter(({ replay_id: id }) => callOf(id) !== this.number);
    if (foreign.some(({ replay_id: id }) => !grant || !this.#service.replays.isAmbiguous(id, grant, list)))
      this.#violate('returned a recording of another lease');
    if (replayStatus === 'ready' && !replays.every((replay) => replay.finished_at))
      this.#violate('reported a recording as ready that is not');
  }

  /** `leaseBrowser`, released once or twice. */
  async #lease(): Promise<void> {
    const { clock, random } = this.#world;
    const options = this.#heldOptions();
    const lease = await this.#world.library.api.leaseBrowser(this.#pool, options);
    const held = random.between(0, 3000);
    this.#heldFor += held;
    lease.use(({ touch }) => touch()).catch(() => {});
    await clock.sleep(held);
    await this.#release(lease);
  }

  /** `leaseBrowser` with `reconnect`: a call fails when its connection ends, and the next call works. */
  async #agent(): Promise<void> {
    const { clock, random } = this.#world;
    const options = this.#heldOptions();
    const lease = await this.#world.library.api.leaseBrowser(this.#pool, {
      ...options,
      reconnect: random.chance(0.7) ? 'eager' : 'lazy',
    });
    const began = clock.now;
    for (let step = random.between(1, 4); step > 0; step--) {
      if (random.chance(0.2)) await lease.reconnect().catch(() => {});
      else await clock.sleep(random.between(0, 3000));
      let isLost = false;
      const work = async ({ socket, touch }: SimulatedHandles) => {
        touch();
        await clock.sleep(random.between(1, 2000));
        isLost = socket.isOver;
      };
      await lease.use(work).then(
        () => isLost && this.#violate('used a connection that had ended'),
        () => {},
      );
    }
    this.#heldFor += clock.now - began;
    await this.#release(lease);
  }

  /** One process detaches a lease, another attaches it. */
  async #handOver(): Promise<void> {
    const { clock, random } = this.#world;
    const { api } = this.#world.library;
    const options = this.#heldOptions();
    const lease = await api.leaseBrowser(this.#pool, options);
    const began = clock.now;
    lease.use(({ touch }) => touch()).catch(() => {});
    const detached = await lease.detach().catch(() => undefined);
    if (!detached) return this.#release(lease);
    await clock.sleep(random.between(0, 5000));
    const {
      acquireTimeout: _,
      pollTimeout: _poll,
      connectAttempts: _most,
      retry: _retry,
      tags: _tags,
      ...rest
    } = options;
    const given = { ...rest, pool: this.#pool };
    const again = await api.attachBrowser(detached, given).catch((error: unknown) => {
      // The lease still belongs to this caller.
      this.excused.add(detached.sessionId);
      this.#heldFor += clock.now - began;
      throw error;
    });
    this.#heldFor += clock.now - began + this.#limits;
    await this.#release(again);
  }

  async #release(lease: PooledBrowser<SimulatedHandles, object>): Promise<void> {
    const { clock, random } = this.#world;
    const [tail] = await Promise.all([lease.release(), random.chance(0.3) && lease.release()]);
    // The holder of such a lease ends it: an abort only closes its connection.
    this.#abortedAt = Math.max(this.#abortedAt, clock.now);
    this.#checkReplays(tail);
    if (tail.released === 'left') this.excused.add(idOf(tail.session));
  }

  /** `mapPooledBrowsers`: each input has one outcome, unless the loop is left or ends in an error. */
  async #map(): Promise<void> {
    const { random, clock } = this.#world;
    const { context: _context, ...options } = this.#heldOptions();
    const count = random.between(0, 20);
    const patience = random.chance(0.2) ? random.between(0, count) : count;
    const inputs = Array.from({ length: count }, (_, input) => input);
    const seen = new Set<number>();
    const task = async (lease: SimulatedHandles & { signal: AbortSignal; input: number }) => {
      if (this.isSettled) this.#violate('called its callback after it had settled');
      lease.touch();
      await clock.sleep(random.between(1, 500));
      if (this.#world.strikes('callback: throws')) throw new Error('the callback failed');
      if (this.#world.strikes('callback: closes the browser')) lease.socket.close('closed-by-callback');
      if (this.#world.strikes('callback: hangs')) await new Promise(() => {});
      return lease.input;
    };
    const outcomes = this.#world.library.api.mapPooledBrowsers(this.#pool, inputs, task, {
      ...options,
      concurrency: random.between(1, 6),
      pagesPerLease: random.between(1, 3),
      isolation: random.pick(['none', 'storage', 'context']),
      retries: random.between(0, 2),
      tasksPerLease: random.between(1, 10),
      taskTimeout: 5000,
      ordered: random.chance(0.5),
    });
    for await (const outcome of outcomes) {
      if (seen.has(outcome.index)) this.#violate(`yielded two outcomes for input ${outcome.index}`);
      seen.add(outcome.index);
      if (outcome.status === 'fulfilled' && outcome.value !== outcome.index)
        this.#violate('mixed up its values');
      if (seen.size > patience) return;
    }
    if (seen.size !== count) this.#violate(`yielded ${seen.size} outcomes for ${count} inputs`);
  }

  /** `BrowserPool.acquire`: the receiver of the session releases it. */
  async #acquire(): Promise<void> {
    const { clock, random } = this.#world;
    const wait = random.between(0, 20);
    this.#heldFor += 1000 * wait + 15_000;
    const session = await this.#pool.acquire(
      { ...this.#tags, acquire_timeout_seconds: wait },
      { signal: this.#controller.signal, onEvent: this.#onEvent },
    );
    if (!session) return;
    const sessionId = idOf(session);
    const held = random.between(0, 1000);
    this.#heldFor += held;
    await clock.sleep(held);
    this.#heldFor += 5000;
    // Once: a browser that is still leased then is the caller's responsibility.
    await this.#pool.release(sessionId, { timeout: 5000 }).catch(() => this.excused.add(sessionId));
    this.#abortedAt = Math.max(this.#abortedAt, clock.now);
  }

  get #tags() {
    return { tags: { call: String(this.number) } };
  }

  #leaseOptions() {
    const connector = simulatedConnector(this.#world, this.#service);
    const { signal } = this.#controller;
    return { ...this.#options, ...this.#tags, connector, signal, onEvent: this.#onEvent };
  }

  /** Without the option of a callback. */
  #heldOptions() {
    const { timeout: _timeout, ...options } = this.#leaseOptions();
    return options;
  }

  readonly #onEvent = (event: RunEvent<object> | PoolEvent): void => {
    if (this.#world.story)
      this.#world.tell(`call ${this.number}: ${event.type} ${'error' in event ? String(event.error) : ''}`);
    if (event.type === 'outcome-unknown') this.unknown++;
    // Perhaps there is a second recording of this lease, or the first list is missing.
    if (event.type === 'recording-unavailable' || (event.type === 'replays' && event.error))
      this.#mayLackReplays = true;
    if (event.type === 'released' && event.released === 'reused') this.#checkReused(event.sessionId);
    if (event.type === 'ended') this.#checkUnknown(event.summary.unknownAcquires);
    if (event.type === 'release-failed') this.excused.add(event.sessionId);
    // A job may lease a browser for which no task is left.
    const isUsed = event.type === 'callback-started' || (this.way === 'map' && event.type === 'connected');
    if (isUsed && this.#options.release === 'leave') this.excused.add(event.sessionId);
    if (this.#world.strikes('listener: throws')) throw new Error('the listener failed');
  };

  /** The sum of all timeouts of the options. */
  get #limits(): number {
    const { acquireTimeout, connectAttempts, connectTimeout, timeout = 3000, ...rest } = this.#options;
    const connecting = connectAttempts * (connectTimeout + rest.releaseTimeout);
    return acquireTimeout + connecting + timeout + TEARDOWN + rest.replaysTimeout + rest.releaseTimeout;
  }

  #checkReused(sessionId: string): void {
    const { shape, leasesAgain } = this.#service;
    if (!leasesAgain && shape !== 'cdp') this.#violate(`reported ${sessionId} as reused by such a service`);
    const used = this.#service.grants.findLast((grant) => grant.call === this.number && shape === 'cdp');
    if (used) this.#service.checkClean(used.browser, this.number);
  }

  /** A request that is open when the call ends may still lease a browser. */
  #checkUnknown(reported: number): void {
    if (['map', 'nested', 'handover'].includes(this.way)) return;
    const open = this.#service.acquiring(this.number);
    if (reported < this.unknown + open)
      this.#violate(`reported ${reported} unknown outcomes, of ${this.unknown} and ${open} open requests`);
  }

  #checkTime(began: number): void {
    const { now } = this.#world.clock;
    const limit = began + this.#limits + this.#heldFor + GRACE;
    if (now > limit) this.#violate(`settled ${Math.round(now - limit)} ms late`);
    // leaseBrowser and BrowserPool have no timeout for the use of the browser.
    const ends = this.way === 'run' || this.way === 'nested';
    if (ends && now > Math.max(began, this.#abortedAt) + GRACE + 5)
      this.#violate('settled late after an abort');
  }

  get #mayStillListen(): boolean {
    // `BrowserPool.acquire` keeps its listener until the response arrives.
    return this.way !== 'run' && this.way !== 'nested' ? true : this.#callbacks === 0;
  }

  /** Aborts the call. */
  abort(): void {
    if (this.isSettled || this.#controller.signal.aborted) return;
    this.#world.tell(`call ${this.number} aborts`);
    this.#abortedAt = this.#world.clock.now;
    this.#controller.abort(new Error('the caller aborted'));
  }

  #violate(what: string): void {
    this.#world.violate(`call ${this.number} (${this.way}) ${what}`);
  }
}

function idOf(session: object): string {
  const { session_id, id } = session as { session_id?: string; id?: string };
  return String(session_id ?? id);
}

function drawOptions({ random }: World) {
  const release = random.chance(0.03)
    ? 'leave'
    : random.pick<'auto' | ReleaseChoice>(['auto', 'auto', 'reuse', 'destroy']);
  return {
    acquireTimeout: random.pick([1000, 10_000, 60_000, 300_000]),
    pollTimeout: random.pick<number | false>([false, 1000, 5000, 25_000]),
    connectTimeout: random.pick([500, 5000, 30_000]),
    connectAttempts: random.between(1, 3),
    timeout: random.pick([undefined, 500, 5000]),
    release,
    context: random.pick<'default' | 'new'>(['default', 'default', 'new']),
    retry: random.chance(0.1) ? { retries: random.between(0, 3) } : {},
    releaseTimeout: random.pick([500, 5000, 10_000]),
    ...random.pick([
      { replays: 'list' as const },
      // Another process would write the video, with a clock of its own.
      { replays: 'record' as const, recording: { by: 'service' as const } },
      { replays: 'off' as const },
    ]),
    replaysTimeout: random.pick([500, 10_000]),
  };
}
