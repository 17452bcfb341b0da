import type { MapProgress, RunningAttempt } from '../jobs/progress.js';
import type { QueueProgress } from '../jobs/queue/queue-progress.js';
import { excerpt } from '../shared/redact.js';
import { showInput } from './input-formats.js';
import type { Span } from './live-lines.js';
import { describeReason, withInput } from './map-failures.js';
import { counted } from './terminal.js';

/** Width of the bar, and minimum width of a terminal with a bar, in columns. */
const BAR = 20;
const WIDTH_FOR_BAR = 60;
/** Maximum number of running tasks that are shown, the oldest first. */
const MOST_ATTEMPTS = 4;
const LONGEST_INPUT = 200;

/** The progress of a job, or of a whole queue with the tasks that run here. */
export type ShownProgress = MapProgress & Partial<Pick<QueueProgress, 'workers'>>;

/** Draws the progress of a job: a bar, the last error, and the tasks that run. */
export function barLines(progress: ShownProgress, columns: number): Span[][] {
  const { attempts, lastFailure } = progress;
  const lines = [[...(columns < WIDTH_FOR_BAR ? [] : barOf(progress)), ...joined(factsOf(progress))]];
  if (lastFailure) {
    const { input, error } = lastFailure;
    lines.push([[`last error: ${withInput(describeReason(error), input)}`, 'red']]);
  }
  lines.push(...attempts.slice(0, MOST_ATTEMPTS).map(attemptLine));
  if (attempts.length > MOST_ATTEMPTS)
    lines.push([[`        and ${attempts.length - MOST_ATTEMPTS} more`, 'dim']]);
  return lines;
}

/** Describes the progress of a job in one short line. */
export function describeProgress(progress: ShownProgress): string {
  return factsOf(progress)
    .map(([text]) => text)
    .join(', ');
}

function barOf({ succeeded, failed, skipped, total }: MapProgress): Span[] {
  if (total === undefined) return [];
  const filled =
    total === 0 ? BAR : Math.min(BAR, Math.floor((BAR * (succeeded + failed + skipped)) / total));
  return [['['], ['='.repeat(filled), 'green'], ['-'.repeat(BAR - filled), 'dim'], ['] ']];
}

function factsOf(progress: ShownProgress): Span[] {
  const { succeeded, failed, skipped, leases, waiting, rate, total, timeLeft, workers } = progress;
  const isStarting = !workers && rate === 0 && leases === 0 && waiting > 0;
  const own = factsOfProcess(progress);
  return [
    [`${succeeded + failed + skipped}${total === undefined ? '' : ` of ${total}`} finished`],
    ...(failed > 0 ? [[`${failed} failed`, 'red'] as const] : []),
    ...(workers ? queueFacts(progress) : own),
    ...(isStarting ? [['the first browser starts or is waited for'] as const] : []),
    ...(isStarting || isIdle(progress) ? [] : [[`${rate.toFixed(1)}/s`] as const]),
    ...(timeLeft !== undefined && timeLeft > 0 ? [[`${describeTime(timeLeft)} left`] as const] : []),
    ...(workers ? own.map(prefixed) : []),
  ];
}

function prefixed([text, format]: Span, at: number): Span {
  return [at === 0 ? `this process: ${text}` : text, format];
}

/** Whether nothing runs or waits: the rate of a worker that waits for inputs only falls. */
export function isIdle({ attempts, waiting, running }: ShownProgress): boolean {
  return attempts.length + waiting + running === 0;
}

/** What this process does, also if the other facts are those of a queue. */
function factsOfProcess({ workers, attempts, retried, leases, slowestHost }: ShownProgress): Span[] {
  return [
    ...(workers && attempts.length > 0 ? [[`${attempts.length} running`] as const] : []),
    ...(retried > 0 ? [[`${retried} ${retried === 1 ? 'retry' : 'retries'}`, 'yellow'] as const] : []),
    ...(leases > 0 ? [[counted(leases, 'browser')] as const] : []),
    ...(slowestHost
      ? [[`slowest: ${shown(slowestHost.host)} (${(slowestHost.average / 1000).toFixed(1)} s)`] as const]
      : []),
  ];
}

/** Most workers that are shown. */
const MOST_WORKERS = 4;

function queueFacts({ workers, waiting, running }: ShownProgress): Span[] {
  if (!workers) return [];
  const busiest = Object.entries(workers).toSorted(([, one], [, other]) => other - one);
  const shown = busiest.slice(0, MOST_WORKERS).map(([name, count]) => `${name}: ${count}`);
  if (busiest.length > MOST_WORKERS) shown.push(`${busiest.length - MOST_WORKERS} more workers`);
  const taken = `${running} taken by workers`;
  return [[`${waiting} waiting`], [shown.length > 0 ? `${taken} (${shown.join(', ')})` : taken]];
}

function joined(facts: readonly Span[]): Span[] {
  return facts.flatMap((fact, at) => (at === 0 ? [fact] : [[', '] as const, fact]));
}

function attemptLine({ input, attempt, elapsed }: RunningAttempt): Span[] {
  const age = describeTime(elapsed).padStart(6);
  return [
    [`${age}  `, 'dim'],
    [attempt > 1 ? `attempt ${attempt}  ` : '', 'yellow'],
    [shown(showInput(input)), 'dim'],
  ];
}

function shown(text: string): string {
  return excerpt(text, LONGEST_INPUT);
}

function describeTime(milliseconds: number): string {
  const minutes = Math.floor(milliseconds / 60_000);
  return minutes === 0 ? `${Math.ceil(milliseconds / 1000)} s` : `${minutes} min`;
}
