import type { Replay } from '../../service/wire.js';
import { interruptible } from '../interruptible.js';
import { note, printable } from '../note.js';
import { ANY_POOL, openPool } from '../open-pool.js';
import type { ServiceOptions } from '../service-option.js';
import { formatTable } from '../table.js';

/** What the command line says about `replays`. */
export interface ReplaysOptions extends ServiceOptions {
  json?: true;
}

/** Lists the recordings of a session. */
export async function replays(sessionId: string, options: ReplaysOptions): Promise<void> {
  await interruptible(async (signal) => {
    await using pool = openPool(ANY_POOL, options);
    const list = await pool.replays(sessionId, { signal });
    if (options.json) process.stdout.write(`${JSON.stringify(list)}\n`);
    else if (list.length === 0) note(`Session ${sessionId} has no recordings.`);
    else process.stdout.write(`${printable(toTable(list))}\n`);
  });
}

function toTable(list: readonly Replay[]): string {
  return formatTable([['replay', 'started', 'finished', 'link'], ...list.map(toRow)]).join('\n');
}

/** No field of a replay is required (interface: Replay). */
function toRow({ replay_id, started_at, finished_at, replay_view_url }: Replay): string[] {
  return [replay_id ?? '-', started_at ?? '-', finished_at ?? 'not yet', replay_view_url ?? '-'];
}
