import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { clock, startTimer } from '../../shared/clock.js';
import type { FeatureContext, LocalFeature, RunningFeature } from '../feature.js';
import { bodyOf, faultAnswer, HttpFault, type Answer, type Content } from '../http/answer.js';
import type { RequestName } from '../http/request.js';
import type { ServedLease } from '../pool/served-lease.js';
import {
  chaosChecks,
  FAULTS,
  faultsAt,
  readChaos,
  type ChaosEvent,
  type ChaosOptions,
  type ChaosPlan,
  type FaultPlace,
  type LocalPoolFault,
} from './faults.js';

/** A fault with all its values. */
type ChosenFault = LocalPoolFault & { status: number; milliseconds: number };

const STATUSES = [429, 500, 502, 503, 504];
/** In milliseconds. */
const LONGEST_DELAY = 3_000;

/** Causes the faults of the option `chaos`. */
export const chaos: LocalFeature<ChaosOptions, object, ChaosEvent> = {
  checks: chaosChecks,
  prepare: ({ chaos: given }) => {
    const plan = given && readChaos(given);
    return (context) => (plan ? new Chaos(plan, context) : {});
  },
};

class Chaos implements RunningFeature {
  readonly #plan: ChaosPlan;
  readonly #log: (event: ChaosEvent) => void;
  readonly #counts = new Map<FaultPlace, number>();

  constructor(plan: ChaosPlan, context: FeatureContext<ChaosEvent>) {
    this.#plan = plan;
    this.#log = (event) => context.log(event);
  }

  /**
   * Answers a request, perhaps with a fault.
   *
   * @returns Undefined when there is no answer.
   */
  async answer(
    place: RequestName,
    response: ServerResponse,
    process: () => Promise<Answer | undefined>,
  ): Promise<Answer | undefined> {
    const fault = this.#next(place);
    if (!fault) return process();
    if (fault.fault === 'status') return faultAnswer(injected(fault));
    if (fault.fault === 'resetBefore') return reset(response.socket);
    // A service does not detect that its response is lost, so the lease stays.
    const processed = await process().catch(faultAnswer);
    if (!processed) return undefined;
    const { onUndelivered: _, ...answer } = processed;
    if (fault.fault === 'noAnswer') return undefined;
    if (fault.fault === 'delay') {
      // A pool that closes does not wait for it.
      await sleep(fault.milliseconds, undefined, { ref: false });
      return answer;
    }
    const content = bodyOf(answer);
    if (fault.fault === 'resetAfter' || !content) return reset(response.socket);
    return { ...answer, content: { ...content, data: Readable.from(firstHalf(content)) } };
  }

  /**
   * Lets an upgrade request of a lease pass, or causes a fault.
   *
   * @returns A function for the open WebSocket. Undefined when the request stays without an answer.
   * @throws HttpFault when the request is refused.
   */
  upgrade(socket: Socket): ((lease: ServedLease, disconnect: () => void) => void) | undefined {
    const fault = this.#next('socket');
    if (fault?.fault === 'refuseUpgrade') throw injected(fault);
    if (fault?.fault === 'noUpgrade') return undefined;
    return (lease, disconnect) => {
      if (!fault) return;
      const timer = startTimer(fault.milliseconds, () => {
        if (fault.fault === 'resetSocket') return void socket.resetAndDestroy();
        // Nothing is sent or read any more. For the lease, the client has disconnected.
        socket.cork();
        socket.pause();
        disconnect();
        lease.signal.addEventListener('abort', () => socket.destroy());
      });
      socket.once('close', () => clock.clearTimeout(timer));
    };
  }

  /** Ends a lease early, perhaps. */
  onLeased(lease: ServedLease): void {
    const fault = this.#next('lease');
    if (!fault) return;
    const timer = startTimer(fault.milliseconds, () => {
      if (fault.fault === 'expireLease') lease.expire();
      else void lease.browser.process.kill();
    });
    lease.signal.addEventListener('abort', () => clock.clearTimeout(timer));
  }

  #next(at: FaultPlace): ChosenFault | undefined {
    const nth = (this.#counts.get(at) ?? 0) + 1;
    this.#counts.set(at, nth);
    const fault = choose(this.#plan, at, nth);
    if (fault) this.#log({ type: 'chaos', seed: this.#plan.seed, ...shown(fault) });
    return fault;
  }
}

/** Depends only on the plan, the place and the number, so that parallel requests do not change each other's faults. */
function choose({ seed, rates, faults }: ChaosPlan, at: FaultPlace, nth: number): ChosenFault | undefined {
  const digest = createHash('sha256').update(`${seed} ${at} ${nth}`).digest();
  const [first, second, third] = [0, 4, 8].map((offset) => digest.readUInt32BE(offset) / 2 ** 32);
  const listed = faults.find((one) => one.at === at && one.nth === nth);
  let rest = first!;
  const fault = listed?.fault ?? faultsAt(at).find((name) => (rest -= rates[name]) < 0);
  if (!fault) return undefined;
  const status = listed?.status ?? STATUSES[Math.floor(second! * STATUSES.length)]!;
  const milliseconds = listed?.milliseconds ?? Math.ceil(third! * LONGEST_DELAY);
  return { fault, at, nth, status, milliseconds };
}

/** Only with the value that the fault has. */
function shown({ fault, at, nth, ...values }: ChosenFault): LocalPoolFault {
  const [, value] = FAULTS[fault];
  return { fault, at, nth, ...(value && { [value]: values[value] }) };
}

function injected({ status }: ChosenFault): HttpFault {
  return new HttpFault(status, 'chaos', 'The option chaos of this local pool caused this response.');
}

function reset(socket: Socket | null): undefined {
  socket?.resetAndDestroy();
}

/** Fails in the middle, which closes the connection. */
async function* firstHalf({ data, size }: Content): AsyncGenerator<Buffer> {
  let left = Math.ceil(size / 2);
  for await (const chunk of data instanceof Readable ? (data as AsyncIterable<Buffer>) : [data]) {
    yield chunk.subarray(0, left);
    left -= chunk.length;
    if (left <= 0) break;
  }
  // Waits until the written data is sent.
  await turn();
  throw new Error('The option chaos ends this response.');
}
