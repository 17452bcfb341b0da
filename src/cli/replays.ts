import type { Command } from 'commander';
import type { Interruption } from './interruption.js';
import { ABOUT_TOKEN, addServiceOption, type ServiceOptions } from './options.js';
import { withService } from './service.js';
import { formatTable, note, printJson } from './terminal.js';

export function define(command: Command, { signal }: Interruption): void {
  addServiceOption(command)
    .description('Lists all recordings of a browser session, of every lease that this browser has had.')
    .argument('<session>', 'id of the session')
    .option('--json', 'print the list as JSON, as the service sent it')
    .addHelpText('after', HELP)
    .action(async (session: string, options: ReplaysOptions) => replays(session, options, signal));
}

const HELP = `${ABOUT_TOKEN}

Everybody with the link of a recording can watch it.

Examples:
  $ pooled-browser replays 6b2c9d0e-5f1a-4c1e-9a55-1e2f3a4b5c6d
  $ pooled-browser replays 6b2c9d0e-5f1a-4c1e-9a55-1e2f3a4b5c6d --json | jq -r '.[].replay_view_url'`;

interface ReplaysOptions extends ServiceOptions {
  json?: true;
}

async function replays(sessionId: string, options: ReplaysOptions, signal: AbortSignal): Promise<void> {
  const list = await withService(options, (service) => service.replays(sessionId, { signal }));
  if (options.json) return void printJson(list);
  if (list.length === 0) return note(`Session ${sessionId} has no recordings.`);
  // No field of a replay is required.
  const rows = list.map(({ replay_id, started_at, finished_at, replay_view_url }) => {
    return [replay_id ?? '-', started_at ?? '-', finished_at ?? 'not yet', replay_view_url ?? '-'];
  });
  process.stdout.write(`${formatTable([['replay', 'started', 'finished', 'link'], ...rows]).join('\n')}\n`);
}
