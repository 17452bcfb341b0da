import { drawRates, type Fault, type Rates } from './faults.js';
import { Caller, type Way } from './caller.js';
import { Random } from '../support/random.js';
import { sender, SimulatedService } from './simulated-service.js';
import type { Host } from '../../src/pool/host.js';
import type { Connections } from '../../src/net/connections.js';
import type { SpareConnection } from '../../src/net/spare-connection.js';
import { serviceOf, type Shape, type SimulatedPool } from './simulated-services.js';
import { openSimulatedSocket } from './simulated-socket.js';
import { library as ours, World, type Library } from './world.js';

/** Expired leases were ended by the service; excused ones were reported as not released, or left on purpose. */
export const NO_FIGURES = {
  lifecycles: 0,
  requests: 0,
  granted: 0,
  released: 0,
  expired: 0,
  excused: 0,
  /** Requests reported as unknown, and the leases that they left. */
  unknownAcquires: 0,
  unknownLeases: 0,
};

export type Figures = typeof NO_FIGURES;

export interface Verdict extends Figures {
  seed: number;
  violations: readonly string[];
  story: readonly string[];
}

export interface SimulationOptions {
  library?: Library;
  /** Whether to keep a log. */
  story?: boolean;
  /** Faults that do not happen, to simplify a failing world. */
  without?: ReadonlySet<Fault>;
  /** Replaces what the seed would draw. */
  rates?: Rates;
  ways?: readonly Way[];
  shape?: Shape;
}

const SHAPES: readonly Shape[] = ['kernel', 'kernel', 'kernel', 'kernel without owner', 'own', 'cdp'];
/** A browser without a service can't be leased for another program. */
const WAYS_WITHOUT_SERVICE: readonly Way[] = ['run', 'run', 'run', 'lease', 'agent', 'handover', 'nested'];
const WAYS: readonly Way[] = ['run', 'run', 'run', 'lease', 'agent', 'handover', 'acquire', 'nested'];

/** Runs one simulated world, which depends on nothing but its seed, and checks the rules. */
export async function simulate(seed: number, options: SimulationOptions = {}): Promise<Verdict> {
  const { library = ours, story = false, without = new Set() } = options;
  const random = new Random(seed);
  const drawn = options.rates ?? drawRates(random);
  const rates = new Map([...drawn].filter(([fault]) => !without.has(fault)));
  const world = new World(random, { library, rates, story });
  const shape = options.shape ?? random.pick(SHAPES);
  const possible = shape === 'cdp' ? WAYS_WITHOUT_SERVICE : WAYS;
  const ways = options.ways ?? Array.from({ length: random.between(1, 16) }, () => random.pick(possible));
  const service = new SimulatedService(world, {
    size: random.between(1, 5),
    shape,
    keepsIds: shape === 'kernel' && random.chance(0.5),
    showsTags: random.chance(0.7),
    searches: random.chance(0.6),
    sendsDates: random.chance(0.7),
    hasProfiles: random.chance(0.2),
  });
  const restore = takeOver(world, service);
  try {
    const baseUrl = newOrigin();
    const pool = new library.api.BrowserPool('pool', {
      service: serviceOf(shape, world, baseUrl),
      baseUrl,
      token: drawToken(world),
    }) as SimulatedPool;
    const callers = ways.map((way, index) => new Caller(index, way, { world, service, pool }));
    let isClosed = false;
    const lives = Promise.all(callers.map((caller) => sender.run(caller.number, () => caller.live())));
    void lives.then(() => pool.close()).then(() => (isClosed = true));
    await world.clock.run();
    if (!isClosed) world.violate('the pool did not close');
    judge(world, service, callers);
    // The origin is the only part of a world that does not come from its seed.
    const log = (world.story ?? []).map((line) => line.replaceAll(baseUrl, 'https://w.sim'));
    return { seed, violations: world.violations, story: log, ...figuresOf(service, callers) };
  } finally {
    restore();
  }
}

let worlds = 0;

/** A new origin for each world, because the library remembers failures of an origin. */
function newOrigin(): string {
  return `https://w${++worlds}.sim`;
}

/** Replaces the clock, random numbers and the network by simulated ones. */
function takeOver(world: World, service: SimulatedService): () => void {
  const { Host, Wire } = world.library;
  const { open: openHost } = Host.prototype;
  const { open: openWire } = Wire;
  const onRejection = (reason: unknown) => world.violate(`unhandled rejection: ${String(reason)}`);
  const rejectionListeners = process.rawListeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', onRejection);
  const warn = process.emitWarning;
  // Listeners that throw cause warnings.
  process.emitWarning = () => {};
  Host.prototype.open = async function (this: Host) {
    const send: Connections['send'] = (message, { signal, onWrite }) => {
      onWrite?.();
      return service.send(message, signal, this.reachability);
    };
    const connections = { connected: Promise.resolve(), send } as Connections;
    return { connections, spare: NO_SPARE, local: undefined };
  };
  Wire.open = (url, signal) => openSimulatedSocket(world, service, { url: url.href, signal });
  world.clock.install();
  return () => {
    world.clock.uninstall();
    Host.prototype.open = openHost;
    Wire.open = openWire;
    process.emitWarning = warn;
    process.off('unhandledRejection', onRejection);
    for (const listener of rejectionListeners) process.on('unhandledRejection', listener as never);
  };
}

const NO_SPARE = { prepare() {}, renew() {}, close() {} } as unknown as SpareConnection;

function drawToken(world: World): () => Promise<string> {
  const { clock, random } = world;
  return async () => {
    await clock.sleep(world.strikes('token: slow') ? random.between(100, 20_000) : 0);
    if (world.strikes('token: throws')) throw new Error('no token now');
    if (world.strikes('token: hangs')) await new Promise(() => {});
    return 'simulated-token';
  };
}

/** Compares what the library did with what the service recorded. */
function judge(world: World, service: SimulatedService, callers: readonly Caller[]): void {
  // Without a token, no search is sent.
  const mayFailBefore = [...world.rates.keys()].some((fault) => fault.startsWith('token:'));
  if (world.clock.clientTimers > 0) world.violate(`${world.clock.clientTimers} timers were left`);
  for (const caller of callers) {
    const { number, excused, unknown } = caller;
    if (!caller.isSettled) world.violate(`call ${number} did not settle`);
    const open = service.grants.filter(({ call, state }) => call === number && state === 'leased');
    const known = open.filter(({ isKnown, sessionId }) => isKnown && !excused.has(sessionId));
    for (const { sessionId } of known) world.violate(`call ${number} (${caller.way}) lost ${sessionId}`);
    const notKnown = open.filter(({ isKnown }) => !isKnown);
    if (notKnown.length > unknown)
      world.violate(`call ${number} reported ${unknown} unknown outcomes, and there are ${notKnown.length}`);
    for (const { sessionId, isSearched } of notKnown)
      if (!isSearched && !mayFailBefore) world.violate(`call ${number} did not search for ${sessionId}`);
    const most = caller.way === 'nested' ? 4 : 2;
    // A job is many calls.
    if (caller.way !== 'map' && unknown > most)
      world.violate(`call ${number} (${caller.way}) had ${unknown} unknown outcomes`);
  }
}

function figuresOf({ grants, requests }: SimulatedService, callers: readonly Caller[]): Figures {
  const open = grants.filter(({ state }) => state === 'leased');
  return {
    lifecycles: callers.length,
    requests,
    granted: grants.length,
    released: grants.filter(({ state }) => state === 'released').length,
    expired: grants.filter(({ state }) => state === 'expired').length,
    excused: open.filter(({ isKnown }) => isKnown).length,
    unknownAcquires: callers.reduce((sum, { unknown }) => sum + unknown, 0),
    unknownLeases: open.filter(({ isKnown }) => !isKnown).length,
  };
}
