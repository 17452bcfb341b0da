import { RecordFile } from '../jobs/checkpoint.js';
import { iterableSource, type IterableSource } from '../jobs/input-source.js';
import type { OutcomeRecord } from '../jobs/outcome.js';
import type { MapProgress } from '../jobs/progress.js';
import { Collector } from '../jobs/queue/collect.js';
import { addList } from '../jobs/queue/enqueue.js';
import { collectChecks, enqueueChecks, readQueueName, type WorkOptions } from '../jobs/queue/options.js';
import type { QueueProgress } from '../jobs/queue/queue-progress.js';
import type { QueuedOutcome } from '../jobs/queue/queued-job.js';
import { workPooledBrowsers } from '../jobs/queue/work.js';
import type { Pools } from '../pool/browser-pool.js';
import { LinkedAbort } from '../shared/abort.js';
import { readOptions } from '../shared/options.js';
import { EXIT, ExitStatus } from './errors.js';
import { openInputs, withHosts, type MapInputs } from './map-inputs.js';
import { checkpointOf, openOut, printRecord, writeTable } from './map-out.js';
import { MapReport } from './map-report.js';
import { KnownInputs } from './queue-inputs.js';
import { openPools } from './service.js';
import {
  checkArtifacts,
  loadTask,
  QUEUE_LIBRARIES,
  redisOf,
  workSettingsOf,
  type MapCommand,
} from './task-command.js';

/** Most jobs in Redis at a time: a part of a long file. */
const MOST_JOBS = 20_000;
/** Other programs may add lists of their own. */
const LIST = 'default';

/** Runs a job through a queue: adds the inputs, works, and collects the results of all workers. */
export async function mapByQueue(
  poolList: string,
  command: MapCommand,
  queue: string,
  signal: AbortSignal,
): Promise<void> {
  const queueName = readQueueName(queue);
  const connection = redisOf(command);
  await using pools = await openPools(poolList, command);
  await using out = await openOut(command);
  await checkArtifacts(command);
  const work = await loadWork(queueName, pools, command);
  const known = new KnownInputs(checkpointOf(command) ?? `the queue ${queueName}`);
  await using results = await openResults(command, known);
  const stop = new LinkedAbort(signal);
  const check = work ? withHosts(known, { ...command, ...work.options }) : known;
  using inputs = await openInputs(command, stop.signal, check);
  using report = new MapReport(command.out, { signal, text: 'Returning the running tasks to the queue' });
  const progress = queueProgress(report, known, inputs.total);
  await using collector = await Collector.open(
    queueName,
    readOptions(collectChecks, { connection, signal: stop.signal, ...progress.ofQueue }, 'map'),
    LIST,
  );
  const adding = addInputs(collector, command, { connection, inputs, known, signal: stop.signal });
  const working = work?.start({
    ...workSettingsOf(command, report),
    onProgress: progress.ofThisProcess,
    connection,
    signal: stop.signal,
  });
  for (const part of [adding, working]) part?.catch((error: unknown) => stop.abort(error));
  try {
    for await (const record of newResults(collector.outcomes(), known)) {
      await results.keep(record);
      progress.add(record);
    }
    out.isComplete = known.missing === 0;
    if (!out.isComplete) report.fail(`${known.missing} inputs have no result, because Redis has lost them.`);
  } finally {
    stop.abort(undefined);
    await Promise.allSettled([adding, working]);
    await results[Symbol.asyncDispose]();
    if (command.format === 'csv') await writeTable(checkpointOf(command)!, command.out!, report);
    report.end(out.isComplete, command.artifacts);
  }
  if (report.hasFailed) throw new ExitStatus(EXIT.failed);
}

/** Loads what runs the task in this process; nothing with `--concurrency 0`. */
async function loadWork(queueName: string, pools: Pools, command: MapCommand) {
  if (command.concurrency === 0) return undefined;
  const { task, options } = await loadTask(command, QUEUE_LIBRARIES);
  const start = (settings: ReturnType<typeof workSettingsOf> & Pick<WorkOptions, 'connection' | 'signal'>) =>
    workPooledBrowsers(queueName, pools, task, { ...settings, ...options });
  return { start, options };
}

interface AddedInputs {
  readonly connection: string;
  readonly inputs: MapInputs;
  readonly known: KnownInputs;
  readonly signal: AbortSignal;
}

async function addInputs(
  { queue }: Collector,
  { retries, taskTimeout }: MapCommand,
  { connection, inputs, known, signal }: AddedInputs,
): Promise<number> {
  const options = { connection, retries, taskTimeout, maxJobs: MOST_JOBS, list: LIST, signal };
  return addList(queue, inputsWithoutResult(inputs, known), readOptions(enqueueChecks, options, 'map'));
}

/** The first result of each input. */
async function* newResults(
  outcomes: AsyncIterable<QueuedOutcome>,
  known: KnownInputs,
): AsyncGenerator<OutcomeRecord, void, undefined> {
  for await (const { list: _list, ...record } of outcomes) {
    if (known.finish(record.input, record.index)) yield record;
  }
}

/** Where the results go: a file, or stdout. */
interface Results extends AsyncDisposable {
  keep(record: OutcomeRecord): Promise<void>;
}

async function openResults(command: MapCommand, known: KnownInputs): Promise<Results> {
  const checkpoint = checkpointOf(command);
  if (checkpoint === undefined) return { keep: printRecord, [Symbol.asyncDispose]: async () => {} };
  const file = await RecordFile.open(checkpoint, (record, start) => known.load(record, start));
  let closed: Promise<void> | undefined;
  return {
    keep: (record) => file.append(record),
    [Symbol.asyncDispose]: () => (closed ??= file.close(known.superseded)),
  };
}

/** The inputs of a file without those that have a result. */
function inputsWithoutResult({ values }: MapInputs, known: KnownInputs): IterableSource<unknown> {
  const source = iterableSource(values);
  return {
    pull: async () => {
      for (;;) {
        const next = await source.pull();
        if (!next || !known.hasResult(next.index)) return next;
      }
    },
    close: () => source.close(),
  };
}

/** Shows the progress of a whole queue, with the tasks that run in this process. @param total Number of inputs, if it is known. */
function queueProgress(report: MapReport, known: KnownInputs, total: number | undefined) {
  const results = { succeeded: 0, failed: 0 };
  let own: Partial<MapProgress> = {};
  let whole: QueueProgress | undefined;
  const show = () => {
    const counts = { ...results, skipped: known.skipped, ...(total !== undefined && { total }) };
    if (whole) report.show({ retried: 0, leases: 0, attempts: [], ...own, ...whole, ...counts });
  };
  return {
    ofThisProcess: (progress: MapProgress) => {
      own = progress;
      show();
    },
    ofQueue: {
      total: total && Math.max(0, total - known.skipped),
      onProgress: (progress: QueueProgress) => {
        whole = progress;
        show();
      },
    },
    add: (record: OutcomeRecord) => {
      results[record.status === 'fulfilled' ? 'succeeded' : 'failed']++;
      report.add(record);
    },
  };
}
