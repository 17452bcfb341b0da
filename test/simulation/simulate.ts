import { drawRates, type Fault, type Rates } from './faults.js';
import { Caller, type Way } from './caller.js';
import { library as ours, type Library } from './library.js';
import { Random } from './random.js';
import { SimulatedService } from './simulated-service.js';
import { openSimulatedSocket } from './simulated-socket.js';
import { World } from './world.js';

export interface Figures {
  lifecycles: number;
  requests: number;
  granted: number;
  released: number;
  /** Taken away by the service meanwhile. */
  expired: number;
  /** Reported as not given back, or left on purpose. */
  excused: number;
  /** Outcomes told as unknown, and the leases among them that nobody can know of. */
  unknownOutcomes: number;
  unknownLeases: number;
  /** Leases that another's repeated release request ended: possible where a session keeps its id. */
  stolen: number;
}

export interface Verdict extends Figures {
  seed: number;
  violations: readonly string[];
  story: readonly string[];
}

export interface SimulationOptions {
  library?: Library;
  /** Tells what happens, in order. */
  story?: boolean;
  /** Faults that do not strike, for making a failing world smaller. */
  without?: ReadonlySet<Fault>;
  /** Replaces what the seed would draw. */
  rates?: Rates;
  ways?: readonly Way[];
  /** Awaits that fail, see failpoints. */
  beforeRun?: (world: World, callers: readonly Caller[]) => void;
}

const WAYS: readonly Way[] = ['run', 'run', 'run', 'lease', 'agent', 'handover', 'acquire', 'nested'];

/** Lives through one world, which its seed determines to the last detail, and judges it. */
export async function simulate(seed: number, options: SimulationOptions = {}): Promise<Verdict> {
  const { library = ours, story = false, without = new Set() } = options;
  const random = new Random(seed);
  const drawn = options.rates ?? drawRates(random);
  const rates = new Map([...drawn].filter(([fault]) => !without.has(fault)));
  const world = new World(seed, random, { library, rates, story });
  const ways = options.ways ?? Array.from({ length: random.between(1, 16) }, () => random.pick(WAYS));
  const service = new SimulatedService(world, { size: random.between(1, 5), keepsIds: random.chance(0.25) });
  const restore = takeOver(world, service);
  try {
    const pool = new library.api.BrowserPool('pool', { baseUrl: newOrigin(), token: drawToken(world) });
    const callers = ways.map((way, index) => new Caller(index, way, { world, service, pool }));
    options.beforeRun?.(world, callers);
    let isClosed = false;
    const lives = Promise.all(callers.map((caller) => caller.live()));
    void lives.then(() => pool.close()).then(() => (isClosed = true));
    await world.clock.run();
    judge(world, { service, callers, isClosed });
    return { seed, violations: world.violations, story: world.story ?? [], ...figuresOf(service, callers) };
  } finally {
    restore();
  }
}

let worlds = 0;

/** The library remembers of an origin that it failed: no world may know of another. */
function newOrigin(): string {
  return `https://w${++worlds}.sim`;
}

/** Puts the simulation in the place of clock, chance and network. */
function takeOver(world: World, service: SimulatedService): () => void {
  const { OriginSockets, Socket } = world.library;
  const { dispatcher, connected, close } = OriginSockets.prototype;
  const { open } = Socket;
  const onRejection = (reason: unknown) => world.violate(`unhandled rejection: ${String(reason)}`);
  const rejectionListeners = process.rawListeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', onRejection);
  const warn = process.emitWarning;
  // Of listeners that throw.
  process.emitWarning = () => {};
  OriginSockets.prototype.dispatcher = async () => service.dispatcher;
  OriginSockets.prototype.connected = async () => {};
  OriginSockets.prototype.close = async () => {};
  Socket.open = (url, signal) => openSimulatedSocket(world, service, { url, signal });
  world.clock.install();
  return () => {
    world.clock.uninstall();
    Object.assign(OriginSockets.prototype, { dispatcher, connected, close });
    Socket.open = open;
    process.emitWarning = warn;
    process.off('unhandledRejection', onRejection);
    for (const listener of rejectionListeners) process.on('unhandledRejection', listener as never);
  };
}

function drawToken(world: World): () => Promise<string> {
  const { clock, random } = world;
  return async () => {
    await clock.sleep(world.strikes('token: slow') ? random.between(100, 20_000) : 0);
    if (world.strikes('token: throws')) throw new Error('no token now');
    if (world.strikes('token: hangs')) await new Promise(() => {});
    return 'simulated-token';
  };
}

interface Outcome {
  service: SimulatedService;
  callers: readonly Caller[];
  isClosed: boolean;
}

/** Holds the library against the service's books, once nothing is left to happen. */
function judge(world: World, { service, callers, isClosed }: Outcome): void {
  if (!isClosed) world.violate('the pool did not close');
  if (world.clock.clientTimers > 0) world.violate(`${world.clock.clientTimers} timers were left`);
  for (const caller of callers) {
    const { number, excused, unknown } = caller;
    if (!caller.isSettled) world.violate(`call ${number} did not settle`);
    const open = service.grants.filter(({ call, state }) => call === number && state === 'leased');
    const known = open.filter(({ isKnown, sessionId }) => isKnown && !excused.has(sessionId));
    for (const { sessionId } of known) world.violate(`call ${number} (${caller.way}) lost ${sessionId}`);
    const notKnown = open.filter(({ isKnown }) => !isKnown).length;
    if (notKnown > unknown)
      world.violate(`call ${number} told of ${unknown} unknown outcomes, and there are ${notKnown}`);
    const most = caller.way === 'nested' ? 4 : 2;
    // A job is many calls.
    if (caller.way !== 'map' && unknown > most)
      world.violate(`call ${number} (${caller.way}) had ${unknown} unknown outcomes`);
  }
}

function figuresOf({ grants, counts }: SimulatedService, callers: readonly Caller[]): Figures {
  const open = grants.filter(({ state }) => state === 'leased');
  return {
    lifecycles: callers.length,
    requests: counts.requests,
    granted: grants.length,
    released: grants.filter(({ state }) => state === 'released').length,
    expired: grants.filter(({ state }) => state === 'expired').length,
    excused: open.filter(({ isKnown }) => isKnown).length,
    unknownOutcomes: callers.reduce((sum, { unknown }) => sum + unknown, 0),
    unknownLeases: open.filter(({ isKnown }) => !isKnown).length,
    stolen: counts.stolen,
  };
}
