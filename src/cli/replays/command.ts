import type { Command } from 'commander';
import { ABOUT_TOKEN, addServiceOption } from '../service-option.js';
import type { ReplaysOptions } from './replays.js';

export function addReplays(program: Command): void {
  const command = program
    .command('replays')
    .summary('list the recordings of a session')
    .description(
      'Lists all recordings of a browser session: those of every lease of that browser, not of one alone.',
    )
    .argument('<session>', 'id of the session');
  addServiceOption(command)
    .option('--json', 'print JSON: the list as the service gave it')
    .addHelpText('after', HELP)
    .action(async (session: string, options: ReplaysOptions) =>
      (await import('./replays.js')).replays(session, options),
    );
}

const HELP = `${ABOUT_TOKEN}

Whoever has the link of a recording can watch it.

Examples:
  $ pooled-browser replays 6b2c9d0e-5f1a-4c1e-9a55-1e2f3a4b5c6d
  $ pooled-browser replays 6b2c9d0e-5f1a-4c1e-9a55-1e2f3a4b5c6d --json | jq -r '.[].replay_view_url'`;
