import type { Grant } from './simulated-service.js';
import type { World } from './world.js';

interface SimulatedReplay {
  id: string;
  grant: Grant;
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

  start(grant: Grant): object {
    const replay = { id: `r${this.#replays.length}-${grant.call}`, grant, writtenAt: undefined };
    this.#replays.push(replay);
    this.#world.tell(`service: ${grant.sessionId} is recorded as ${replay.id}`);
    return this.#show(replay);
  }

  stop(id: string): void {
    const replay = this.#replays.find((replay) => replay.id === id);
    if (replay) this.#end(replay);
  }

  endLease(grant: Grant): void {
    for (const replay of this.#replays) if (replay.grant === grant) this.#end(replay);
  }

  /** Lists the recordings of a session, over all its leases. */
  list(sessionId: string): object[] {
    return this.#replays
      .filter(({ grant }) => grant.sessionId === sessionId)
      .map((replay) => this.#show(replay));
  }

  #end(replay: SimulatedReplay): void {
    const { clock, random } = this.#world;
    const isWritten = !this.#world.strikes('recording: never written');
    replay.writtenAt ??= isWritten ? clock.now + random.between(0, 5000) : Number.POSITIVE_INFINITY;
  }

  #show({ id, writtenAt = Number.POSITIVE_INFINITY }: SimulatedReplay): object {
    const isFinished = writtenAt <= this.#world.clock.now;
    return { replay_id: id, finished_at: isFinished ? '2026-01-02T03:04:05Z' : null };
  }
}

/** Returns the number of the call to which a recording belongs. */
export function callOf(replayId: string | undefined): number {
  return Number(replayId?.split('-')[1]);
}
