import type { Paint } from '../paint.js';
import { seconds } from './describe-step.js';
import type { Outcome } from './run-job.js';
import { formatTable } from '../table.js';

const HEAD = [
  'library',
  'protocol',
  'acquire',
  'connect',
  'callback',
  'sweep',
  'release',
  'released',
  'replays',
];

/** What each job read, how long its stages took, and what became of its browser and recordings. */
export function summarize(outcomes: readonly Outcome[], paint: Paint): string {
  const [head, ...rows] = formatTable([HEAD, ...outcomes.map(toRow)]);
  const read = outcomes.map(({ job, receipt, error }) => [
    `${job.library} ${job.protocol} read`,
    receipt ?? `nothing: ${error?.message.split('\n', 1)[0]}`,
  ]);
  const replays = outcomes.flatMap(({ run }) => run?.replays ?? []);
  const links = replays.map(({ replay_view_url: link }) => link).filter((link) => link !== undefined);
  return [
    paint('bold', head!),
    ...rows,
    '',
    ...formatTable(read),
    '',
    ...(links.length > 0 ? ['Replays:', ...links] : [`Replays: no links. ${NO_REPLAYS}`]),
  ].join('\n');
}

const NO_REPLAYS = '"none" means that the pool recorded nothing; where a service does, the links stand here.';

function toRow({ job, run }: Outcome): string[] {
  const { acquire, connect, callback, sweep, release } = run?.timings ?? {};
  const times = [acquire, connect, callback, sweep, release].map((time) =>
    time === undefined ? '-' : seconds(time),
  );
  const replays =
    run && run.replays.length > 0 ? `${run.replays.length} ${run.replayStatus}` : run?.replayStatus;
  return [job.library, job.protocol, ...times, run?.released ?? '-', replays ?? '-'];
}
