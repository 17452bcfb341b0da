import type { Grant } from './simulated-service.js';
import type { World } from './world.js';

interface SimulatedReplay {
  id: string;
  grant: Grant;
  startedAt: Date;
  endedAt?: Date;
  /** Whether the first and the last list that arrived in each lease showed it as written. */
  listed: Map<Grant, { first: boolean; last: boolean }>;
  /** Time at which the video is written, after the recording was stopped. */
  writtenAt: number | undefined;
}

/** The recordings of the simulated service. The id of each one contains the call that leased the browser. */
export class SimulatedReplays {
  readonly #world: World;
  readonly #replays: SimulatedReplay[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  start(grant: Grant): { replay_id: string } {
    const replay = {
      id: `r${this.#replays.length}-${grant.call}`,
      grant,
      startedAt: this.#world.date,
      listed: new Map(),
      writtenAt: undefined,
    };
    this.#replays.push(replay);
    this.#world.tell(`service: ${grant.sessionId} is recorded as ${replay.id}`);
    return this.#show(replay);
  }

  stop(id: string): void {
    const replay = this.#replays.find((replay) => replay.id === id);
    if (replay) this.#end(replay);
  }

  /**
   * A recording of the lease before began about when this lease began, and was still being written in a list of this lease:
   * nothing shows to which of them it belongs.
   *
   * @param list The list that decides: the first one, if the lease was handed over after it.
   */
  isAmbiguous(id: string | undefined, grant: Grant, list: 'first' | 'last'): boolean {
    const replay = this.#replays.find((one) => one.id === id);
    const isNear = replay && replay.startedAt.getTime() >= Math.floor(grant.beganAt / 1000) * 1000 - 1000;
    return isNear === true && replay.listed.get(grant)?.[list] === false;
  }

  endLease(grant: Grant): void {
    for (const replay of this.#replays) if (replay.grant === grant) this.#end(replay);
  }

  /** Lists the recordings of a session, over all its leases. @returns Also a function to call when the list has arrived in a lease. */
  list(sessionId: string): { list: object[]; arriveIn: (lease: Grant) => void } {
    const replays = this.#replays.filter(({ grant }) => grant.sessionId === sessionId);
    const written = replays.map((replay) => [replay, isWritten(replay, this.#world)] as const);
    const arriveIn = (lease: Grant) => {
      for (const [{ listed }, last] of written)
        listed.set(lease, { first: last, ...listed.get(lease), last });
    };
    return { list: replays.map((replay) => this.#show(replay)), arriveIn };
  }

  #end(replay: SimulatedReplay): void {
    const { clock, random } = this.#world;
    const isWritten = !this.#world.strikes('recording: never written');
    replay.endedAt ??= this.#world.date;
    replay.writtenAt ??= isWritten ? clock.now + random.between(0, 5000) : Number.POSITIVE_INFINITY;
  }

  #show(replay: SimulatedReplay): { replay_id: string } {
    const { id, startedAt, endedAt } = replay;
    const end = isWritten(replay, this.#world) ? endedAt!.toISOString() : null;
    const facts = { replay_id: id, started_at: startedAt.toISOString(), finished_at: end };
    return facts;
  }
}

function isWritten({ writtenAt }: SimulatedReplay, { clock }: World): boolean {
  return writtenAt !== undefined && writtenAt <= clock.now;
}

/** Returns the number of the call to which a recording belongs. */
export function callOf(replayId: string | undefined): number {
  return Number(replayId?.split('-')[1]);
}
