import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Command } from 'commander';
import { CliError, EXIT } from './errors.js';
import type { Interruption } from './interruption.js';
import { ABOUT_TOKEN, addServiceOption, type ServiceOptions } from './options.js';
import { withService } from './service.js';
import { formatTable, note, printJson } from './terminal.js';

export function define(command: Command, { signal }: Interruption): void {
  addServiceOption(command)
    .description(
      'Lists all recordings of a browser session, of every lease that this browser has had, or repairs a folder.',
    )
    .argument('[session]', 'id of the session')
    .option('--repair <folder>', 'write the videos of recordings whose process was killed, in this folder')
    .option('--json', 'print the list as JSON, with all fields that the service sent')
    .addHelpText('after', HELP)
    .action(async (session: string | undefined, options: ReplaysOptions) => {
      const { repair } = options;
      if (repair !== undefined && session === undefined) return repairFolder(repair, signal);
      if (session === undefined || repair !== undefined)
        throw new CliError('replays needs either the id of a session or --repair FOLDER.', EXIT.usage);
      return replays(session, options, signal);
    });
}

const HELP = `${ABOUT_TOKEN}

The access of a link:
  public   everybody with the link can watch the recording
  login    opening it needs a login at the service
  key      opening it needs the key of the service

Examples:
  $ pooled-browser replays 6b2c9d0e-5f1a-4c1e-9a55-1e2f3a4b5c6d
  $ pooled-browser replays --repair pooled-browser-recordings
  $ pooled-browser replays 6b2c9d0e-5f1a-4c1e-9a55-1e2f3a4b5c6d --json | jq -r '.[].replay_view_url'`;

interface ReplaysOptions extends ServiceOptions {
  repair?: string;
  json?: true;
}

async function replays(sessionId: string, options: ReplaysOptions, signal: AbortSignal): Promise<void> {
  const list = await withService(options, (service) => service.replays(sessionId, { signal }));
  if (options.json) return void printJson(list);
  if (list.length === 0) return note(`Session ${sessionId} has no recordings.`);
  // No field of a replay is required.
  const rows = list.map(({ replay_id, started_at, finished_at, access, replay_view_url }) => [
    replay_id ?? '-',
    started_at ?? '-',
    finished_at ?? 'not yet',
    access ?? '-',
    replay_view_url ?? '-',
  ]);
  const head = ['replay', 'started', 'finished', 'access', 'link'];
  process.stdout.write(`${formatTable([head, ...rows]).join('\n')}\n`);
}

/** Completes the recordings that killed processes have left in a folder, one after another. */
async function repairFolder(folder: string, signal: AbortSignal): Promise<void> {
  const { findUnfinished, completeFolder } = await import('../recorder/complete.js');
  const { openEncoder } = await import('../local/open-encoder.js');
  const unfinished = findUnfinished(folder);
  if (unfinished.length === 0) return note(`No recording in ${folder} needs to be repaired.`);
  const encoder = await openEncoder();
  if (!encoder) note('Without Chromium and ffmpeg there are no videos: the pages show pictures.');
  try {
    for (const path of unfinished) {
      signal.throwIfAborted();
      const { video, pictures } = await completeFolder(path, encoder);
      const what = [video && 'a video', pictures && 'pictures', 'no pictures'].find(Boolean);
      process.stdout.write(`${pathToFileURL(join(path, 'index.html')).href}  ${what}\n`);
    }
  } finally {
    await encoder?.close();
  }
}
