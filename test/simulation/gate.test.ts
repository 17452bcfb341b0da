import { afterEach, expect, it } from 'vitest';
import { Gate, type Answer } from '../../src/pool/gate.js';
import { LinkedAbort } from '../../src/shared/abort.js';
import { Random } from '../support/random.js';
import { VirtualClock } from './virtual-clock.js';

const RETRY = { factor: 2, minTimeout: 250, maxTimeout: 10_000, randomize: true };
const GRANTED: Answer = { isGranted: true, says: 'works' };

let random: Random;
let clock: VirtualClock;

function begin(seed: number): void {
  random = new Random(seed);
  clock = new VirtualClock(random);
  clock.install();
}
afterEach(() => clock.uninstall());

interface Call {
  readonly number: number;
  readonly send: () => Promise<Answer>;
}

/** Asks at a gate until there is a browser. Resolves with the function that ends the lease. */
async function acquire(gate: Gate<Answer>, { number, send }: Call): Promise<() => void> {
  const place = gate.enter({
    number,
    source: gate,
    kind: '',
    limit: Number.POSITIVE_INFINITY,
    wait: Number.POSITIVE_INFINITY,
    retry: RETRY,
    send: ({ onWrite }) => (onWrite(), send()),
    track: () => {},
    release: () => expect.fail('No browser may be without a taker.'),
  });
  for (;;) {
    const { reply, free } = await gate.ask(place, new LinkedAbort());
    if (!reply.isGranted) continue;
    gate.leave(place);
    return () => free(true);
  }
}

const CALLS = 40;
const PLACES = 4;

/** 40 calls of several processes at a service with 4 places, which refuses at once. `hold`: ms for which each keeps its browser. */
async function simulateProcesses(processes: number, hold: () => number) {
  let [held, requests, busy] = [0, 0, 0];
  const waits: number[] = [];
  const send = async (): Promise<Answer> => {
    requests++;
    await clock.sleep(1 + random.next());
    if (held === PLACES) return { isGranted: false, says: 'full' };
    held++;
    await clock.sleep(20);
    return GRANTED;
  };
  const call = async (gate: Gate<Answer>, number: number) => {
    const free = await acquire(gate, { number, send });
    const began = clock.now;
    waits.push(began);
    await clock.sleep(hold());
    held--;
    busy += clock.now - began + 20;
    await clock.sleep(10);
    free();
  };
  for (let number = 0; number < processes; number++) {
    const gate = new Gate<Answer>(true);
    const start = () => {
      for (let one = 0; one < CALLS / processes; one++) void call(gate, one);
    };
    // Processes do not begin in the same millisecond.
    clock.after(3 * number, start);
  }
  await clock.run();
  expect(waits).toHaveLength(CALLS);
  const p95 = waits.toSorted((a, b) => a - b)[Math.ceil(CALLS * 0.95) - 1]!;
  // If the places were never free, the last call would begin when all others but those beside it have ended.
  return { requests: requests / CALLS, wait: p95 / ((busy / PLACES) * (1 - PLACES / CALLS) * 0.95) };
}

const long = () => 500 + 1500 * random.next();
const short = () => 300;

it.each([
  ['one process', 1, long],
  ['four processes', 4, long],
  ['eight processes', 8, long],
  ['two processes with short leases', 2, short],
])(
  'calls of %s at a full service need at most 3 requests a lease, and wait at most 1.3 times as long as at places that are never free',
  async (_who, processes, hold) => {
    const worlds = 40;
    const total = { requests: 0, wait: 0 };
    for (let seed = 1; seed <= worlds; seed++) {
      begin(seed);
      const { requests, wait } = await simulateProcesses(processes, hold);
      clock.uninstall();
      total.requests += requests / worlds;
      total.wait += wait / worlds;
    }
    expect(total.requests).toBeLessThanOrEqual(3);
    expect(total.wait).toBeLessThanOrEqual(1.3);
  },
);

it.each([false, true])(
  '1,000 calls in an outage of 60 s need at most 1.1 requests each, and are served in their order (refuses at once: %s)',
  async (refusesAtOnce) => {
    begin(1);
    const gate = new Gate<Answer>(refusesAtOnce);
    let requests = 0;
    const served: number[] = [];
    const send = async (): Promise<Answer> => {
      requests++;
      await clock.sleep(20);
      return clock.now < 60_000 ? { isGranted: false, says: 'outage', error: new Error('down') } : GRANTED;
    };
    for (let number = 0; number < 1000; number++)
      void acquire(gate, { number, send }).then(() => served.push(number));
    await clock.run();
    expect(served).toHaveLength(1000);
    expect(served).toEqual(served.toSorted((a, b) => a - b));
    expect(requests / 1000).toBeLessThanOrEqual(1.1);
  },
);
