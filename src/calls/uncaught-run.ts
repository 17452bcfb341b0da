import { runOf } from './run.js';
import { isRecord } from '../shared/json.js';
import { runs } from '../shared/process-state.js';
import { printable } from '../shared/redact.js';

/** Most errors in a chain of causes that are read. */
const MOST_CAUSES = 8;

/**
 * Prints the links of the replays if the error of a run ends the process: nobody else can print them then. The error, what Node
 * prints about the error, and the exit code are unchanged.
 */
export function reportUncaughtRuns(): void {
  if (runs.areWatched) return;
  runs.areWatched = true;
  // Not emitted if a listener of the program, or of a test runner, handles the error.
  process.on('uncaughtExceptionMonitor', (error) => {
    for (const link of linksOf(error)) process.stderr.write(`Replay of the failed run: ${printable(link)}\n`);
  });
}

/** The program may have wrapped the error. */
function linksOf(error: unknown): string[] {
  let part = error;
  for (let depth = 0; depth < MOST_CAUSES; depth++) {
    const run = runOf(part);
    if (run) return run.replays.flatMap(({ replay_view_url: link }) => link ?? []);
    if (!(part instanceof Error) && !isRecord(part)) break;
    part = part.cause;
  }
  return [];
}
