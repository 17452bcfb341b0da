import { readQueueName } from '../map/queue/options.js';
import { workPooledBrowsers } from '../map/queue/work.js';
import { MapReport } from './map-report.js';
import { loadScript } from './map-script.js';
import { openPool } from './service.js';
import { checkArtifacts, listenersOf, loadConnector, redisOf, workSettingsOf } from './task-job.js';
import type { TaskOptions } from './task-options.js';

export interface WorkCommandOptions extends TaskOptions {
  queue: string;
  redis?: string;
  /** In ms. */
  idleTimeout: number;
}

interface WorkCommand extends WorkCommandOptions {
  script: string;
}

const INTERRUPTED =
  'Returning the running tasks to the queue and releasing the browsers. Press Ctrl-C again to quit immediately.';

/** Works for a queue until the signal aborts. Checks the whole command before it takes an input. */
export async function runWork(poolName: string, command: WorkCommand, signal: AbortSignal): Promise<void> {
  const queueName = readQueueName(command.queue);
  const connection = redisOf(command);
  await using pool = await openPool(poolName, command);
  await checkArtifacts(command);
  const { task, options } = await loadScript(command.script);
  const connector = await loadConnector(command.library);
  using report = new MapReport(`the queue ${queueName}`);
  signal.addEventListener('abort', () => report.note(INTERRUPTED), { once: true });
  report.note(`Working for the queue ${queueName}. Stop with Ctrl-C.`);
  try {
    const { done, failed } = await workPooledBrowsers(queueName, pool, task, {
      ...workSettingsOf(command),
      ...listenersOf(report, command),
      idleTimeout: command.idleTimeout,
      ...options,
      connection,
      connector,
      signal,
    });
    report.endWith(`Finished ${done} ${done === 1 ? 'input' : 'inputs'}, of which ${failed} failed.`);
  } catch (error) {
    report.endWith('The worker has stopped because of an error.');
    throw error;
  }
}
