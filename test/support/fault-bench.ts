import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect } from 'vitest';
import {
  AcquireTimeoutError,
  BrowserPool,
  runOf,
  type FailedRun,
  type Run,
  type RunEvent,
} from '../../src/index.js';
import type { LocalPool } from '../../src/local.js';
import { expectNoSecrets } from './collected.js';
import { PLAIN, type AnyLease, type Driver } from './drivers.js';
import { FakeService, JWT, reply, session, type Answer } from './fake-service.js';
import { FaultRoad } from './fault-road.js';
import { newIn } from './open-handles.js';
import { askPool, realSession } from './real-session.js';

type Options = NonNullable<Parameters<Driver['run']>[2]>;

/** Default timeouts of a case. They are long, for steps that do not fail: on a busy machine, a browser may start for 30 s. */
const LIMITS = {
  acquireTimeout: 90_000,
  // `grant` answers when there is a browser, however long the request asked it to wait.
  pollTimeout: 90_000,
  connectTimeout: 90_000,
  connectAttempts: 1,
  releaseTimeout: 60_000,
  replaysTimeout: 30_000,
  retry: { minTimeout: 10, maxTimeout: 50 },
} satisfies Options;
/** Timeouts that are not options: for the cleanup and the disconnect. */
const FIXED = 5000 + 2000;
/** Tolerance in ms: of the library beyond its timeouts, and of a busy machine. Far shorter than `LIMITS`. */
const TOLERANCE = 1000 + 20_000;
/** Milliseconds for which an aborted call may continue before it rejects. */
const ABORT_GRACE = 1000;
/** Most requests of one kind in a case: faults last for a few answers, or for up to two seconds. */
const MOST_TRIES = 40;

/** The outcome of a call of the library. */
export interface Outcome {
  value?: unknown;
  /** The error, if `status` is `failed`. */
  error?: Error & Record<string, unknown>;
  status: 'resolved' | 'rejected';
  /** The run of the call, or of its error. */
  run: Run<unknown> | FailedRun | undefined;
  events: RunEvent[];
  /** The caller aborted the call. */
  isAborted: boolean;
}

/**
 * A service, a browser, and the network between them, each of which can fail on demand. The service counts the leases.
 * `settle` checks the invariants after every fault (I1 to I6).
 */
export class FaultBench implements AsyncDisposable {
  readonly service: FakeService;
  readonly road: FaultRoad;
  readonly pool: BrowserPool;
  /** Session ids that were leased to the client, and those that were released. */
  readonly granted = new Set<string>();
  readonly released = new Set<string>();
  /** Destroys the real browser when it is released with `reuse: false`, instead of keeping it for the next case. */
  destroys = false;

  readonly #local: LocalPool | undefined;
  /** Real session ids, by the ids that the client received. */
  readonly #lent = new Map<string, string>();
  readonly #tags = new Map<string, unknown>();
  readonly #outcomes: Outcome[] = [];
  #grants = 0;
  #commandsAtRelease: number | undefined;

  static async start(local?: LocalPool): Promise<FaultBench> {
    return new FaultBench(await FakeService.start(), await FaultRoad.start(), local);
  }

  private constructor(service: FakeService, road: FaultRoad, local: LocalPool | undefined) {
    this.service = service;
    this.road = road;
    this.#local = local;
    this.pool = new BrowserPool('test', service.options);
    service.script('acquire', this.grant);
    service.script('release', this.#takeBack);
    service.script('session', this.#describe);
  }

  /** A session shows its tags until its release. */
  readonly #describe: Answer = (response, { path }) => {
    const id = path.split('/').at(-1)!;
    const tags = this.released.has(id) ? undefined : this.#tags.get(id);
    reply(response, { status: 200, json: session({ session_id: id, ...(tags !== undefined && { tags }) }) });
  };

  /** Leases a real browser behind the simulated network; without a local pool, a WebSocket without a browser. */
  readonly grant: Answer = async (response, { body }) => {
    const lease = await this.lend();
    const tags = body?.['tags'];
    this.#tags.set(String(lease['session_id']), tags);
    reply(response, { status: 200, json: { ...lease, tags } });
  };

  /** Releases a browser, once. Afterwards its session no longer exists, as at a real service. */
  readonly #takeBack: Answer = async (response, { body }) => {
    const { session_id: id, reuse } = body as { session_id: string; reuse: boolean };
    // Earlier messages have arrived. Later messages would reach the browser of another lease.
    await sleep(10);
    this.#commandsAtRelease ??= this.road.commands;
    const isOurs = this.granted.has(id) && !this.released.has(id);
    this.released.add(id);
    await this.#return(id, reuse || !this.destroys);
    reply(response, { status: isOurs ? 204 : 404 });
  };

  fakeSession(fields: Record<string, unknown> = {}): Record<string, unknown> {
    const id = `lease-${++this.#grants}`;
    const url = `ws://${this.road.host}/nowhere?jwt=${JWT}`;
    this.granted.add(id);
    return session({ session_id: id, cdp_ws_url: url, webdriver_ws_url: url, ...fields });
  }

  async lend(): Promise<Record<string, unknown>> {
    if (!this.#local) return this.fakeSession();
    const real = await realSession(this.#local);
    const [cdp, bidi] = [real['cdp_ws_url'], real['webdriver_ws_url']] as [string, string];
    const lent = this.fakeSession({ cdp_ws_url: this.road.to(cdp), webdriver_ws_url: this.road.to(bidi) });
    this.#lent.set(String(lent['session_id']), String(real['session_id']));
    return lent;
  }

  /** Runs a call of the library. `within` is a shorter limit than the sum of its timeouts. */
  async run(
    driver: Pick<Driver, 'name' | 'run'>,
    fn: (lease: AnyLease) => unknown,
    { within, ...options }: Options & { within?: number } = {},
  ): Promise<Outcome> {
    // The first import of a library takes seconds on a busy machine, and no timeout of a call includes it.
    if (driver !== PLAIN) await Promise.all([import('playwright-core'), import('puppeteer-core')]);
    const events: RunEvent[] = [];
    const { signal = new AbortController().signal } = options;
    const settings = { ...LIMITS, ...options, signal };
    let abortedAt: number | undefined = signal.aborted ? performance.now() : undefined;
    const onAbort = () => (abortedAt = performance.now());
    signal.addEventListener('abort', onAbort, { once: true });
    const began = performance.now();
    const onEvent = (event: RunEvent) => void events.push(event);
    const settled = await driver.run(this.pool, fn, { ...settings, onEvent }).then(
      (run) => ({ status: 'resolved', value: run.value, run }) as const,
      (error) => ({ status: 'rejected', error, run: runOf(error) }) as const,
    );
    const now = performance.now();
    const outcome: Outcome = { ...settled, events, isAborted: signal.aborted };
    signal.removeEventListener('abort', onAbort);
    this.#outcomes.push(outcome);
    expect(now - began).toBeLessThan((within ?? sumOf(settings, outcome)) + TOLERANCE);
    if (abortedAt !== undefined) expect(now - abortedAt).toBeLessThan(ABORT_GRACE + TOLERANCE);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    return outcome;
  }

  /** Waits until nothing is under way, and checks the invariants. */
  async settle(): Promise<void> {
    await this.pool.close();
    const events = this.#outcomes.flatMap((outcome) => outcome.events);
    const told = (type: RunEvent['type']) => events.filter((event) => event.type === type);
    // I1: each lease is released, or reported with its session id.
    expect([...this.granted].filter((id) => !this.released.has(id))).toEqual([]);
    expect(told('release-failed')).toEqual([]);
    // No message of the callback reached the browser afterwards.
    if (this.granted.size === 1 && this.#commandsAtRelease !== undefined)
      expect(this.road.commands).toBe(this.#commandsAtRelease);
    // I2: no outcome is unknown, except of a request that is open when its call ends.
    expect(told('outcome-unknown')).toEqual([]);
    for (const { run, error, isAborted } of this.#outcomes) {
      const isOpen = error instanceof AcquireTimeoutError || isAborted;
      expect(run?.unknownAcquires ?? 0).toBeLessThanOrEqual(Number(isOpen));
    }
    // I4: no representation contains a secret.
    for (const { error, run } of this.#outcomes) expectNoSecrets(error, run);
    expectNoSecrets(...events);
    // I6: few requests.
    for (const route of ['acquire', 'release'] as const)
      expect(this.service.of(route).length).toBeLessThan(MOST_TRIES);
    // Two lists, each requested up to three times.
    expect(this.service.of('replays').length).toBeLessThanOrEqual(6 * this.granted.size);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service.close();
    await this.pool.close();
    await this.road[Symbol.asyncDispose]();
    for (const id of this.#lent.keys()) await this.#return(id, !this.destroys);
    // The replacement of a browser that ended uses sockets and timers until it runs.
    while (this.#local && !isReady(this.#local)) await sleep(25);
  }

  async #return(id: string, reuse: boolean): Promise<void> {
    const real = this.#lent.get(id);
    if (this.#lent.delete(id)) await askPool(this.#local!, 'release', { session_id: real, reuse });
  }
}

/** The longest duration of a call by its options. A callback without a timeout adds its own time. */
function sumOf(options: Options, { run }: Outcome): number {
  const { acquireTimeout, connectAttempts, connectTimeout, releaseTimeout, replaysTimeout } = {
    ...LIMITS,
    ...(options as typeof LIMITS),
  };
  const callback = options.timeout ?? run?.timings.callback ?? 0;
  const connecting = connectAttempts * (connectTimeout + releaseTimeout);
  return acquireTimeout + connecting + callback + replaysTimeout + FIXED;
}

function isReady(local: LocalPool): boolean {
  const { idle, starting } = local.stats();
  return idle > 0 && starting === 0;
}

/** Milliseconds until handles have ended: less than the library's timeout for a request, whose timer must not remain. */
const QUIET_TIMEOUT = 20_000;
/** Fewest looks until then, because a blocked event loop does not read that a socket has ended. */
const FEWEST_LOOKS = 100;

/** Fails a test that leaves a socket, a server, a child process or a timer (I5). */
export function useQuiet(): void {
  let before: string[] = [];
  beforeEach(() => {
    before = process.getActiveResourcesInfo();
  });
  afterEach(async () => {
    // Pipes and file operations belong to vitest.
    const left = () =>
      newIn(process.getActiveResourcesInfo(), before).filter((name) =>
        /TCP|TLS|UDP|ProcessWrap|Timeout/.test(name),
      );
    const end = performance.now() + QUIET_TIMEOUT;
    for (let look = 0; left().length > 0 && (look < FEWEST_LOOKS || performance.now() < end); look++)
      await sleep(50);
    expect(left()).toEqual([]);
  });
}
