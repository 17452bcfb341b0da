import type { Connector, Isolation } from '../connect/connector.js';
import { InvalidOptionError, rejectUnknownOptions } from '../shared/errors.js';
import { showValue } from '../shared/json.js';
import { checkLeaseName } from '../service/checks.js';
import { checkOptions, type Settings } from '../lease/settings.js';
import { checkCheckpoint, type CheckpointOptions } from './checkpoint.js';
import type { MapOptions } from './options.js';
import type { MapProgress } from './progress.js';

/** All options with their defaults, checked. */
export interface MapSettings {
  /** Of each lease. */
  lease: Settings;
  concurrency: number;
  pagesPerLease: number;
  isolation: Isolation;
  retries: number;
  taskTimeout: number;
  tasksPerLease: number;
  maxLeaseAge: number;
  ordered: boolean;
  total: number | undefined;
  checkpoint: CheckpointOptions | undefined;
  onProgress: ((progress: MapProgress) => void) | undefined;
}

const CALLER = 'mapPooledBrowsers';
const ISOLATIONS: readonly Isolation[] = ['context', 'storage', 'none'];
/** Options of other functions that lease. */
const FOREIGN = ['context', 'timeout', 'awaitRelease', 'reconnect', 'keepAlive'];
/** More leases than any job takes: the number is part of their names. */
const LAST_LEASE = 999_999;

/** Checks all options before anything is sent. */
export function checkMapOptions(options: MapOptions, connector: Connector): MapSettings {
  const {
    concurrency = 4,
    pagesPerLease = 1,
    isolation = 'context',
    retries = 0,
    taskTimeout = Number.POSITIVE_INFINITY,
    tasksPerLease = Number.POSITIVE_INFINITY,
    maxLeaseAge = Number.POSITIVE_INFINITY,
    ordered = false,
    total,
    checkpoint,
    onProgress,
    ...leaseOptions
  } = options;
  const own = { concurrency, pagesPerLease, isolation, retries, taskTimeout, tasksPerLease, maxLeaseAge };
  const all = { ...own, ordered, total, onProgress };
  const known = [...leaseOptionNames(connector), ...Object.keys(all), 'checkpoint'];
  rejectUnknownOptions(leaseOptions, known, CALLER);
  checkNumbers(own);
  checkChoices(all);
  const lease = checkOptions(leaseOptions, connector, CALLER);
  if (lease.name) checkLeaseName(nameOfLease(lease.name, LAST_LEASE));
  const refusal = connector.refusal(lease.protocol, isolation);
  if (refusal) throw new InvalidOptionError('isolation', refusal);
  return { ...all, lease, checkpoint: checkCheckpoint(checkpoint) };
}

/** A lease's name must be unique among the active ones (interface: Limits). */
export function nameOfLease(name: string, lease: number): string {
  return `${name}-${lease}`;
}

/** Those of a lease that make sense here: `isolation` stands for `context`, and `taskTimeout` for `timeout`. */
function leaseOptionNames(connector: Connector): string[] {
  const names = Object.keys(checkOptions({}, connector, CALLER));
  return names.filter((name) => !FOREIGN.includes(name));
}

function checkNumbers(options: Record<string, unknown>): void {
  for (const option of ['concurrency', 'pagesPerLease']) checkCount(option, options[option], 1);
  checkCount('retries', options['retries'], 0);
  if (options['tasksPerLease'] !== Number.POSITIVE_INFINITY)
    checkCount('tasksPerLease', options['tasksPerLease'], 1);
  for (const option of ['taskTimeout', 'maxLeaseAge']) {
    const value = options[option];
    if (typeof value === 'number' && value > 0) continue;
    throw new InvalidOptionError(
      option,
      `${option} must be a number of milliseconds above 0, not ${showValue(value)}.`,
    );
  }
}

function checkCount(option: string, value: unknown, least: number): void {
  if (Number.isSafeInteger(value) && (value as number) >= least) return;
  throw new InvalidOptionError(
    option,
    `${option} must be a whole number, ${least} or more, not ${showValue(value)}.`,
  );
}

function checkChoices({
  isolation,
  ordered,
  total,
  onProgress,
}: Pick<MapSettings, 'isolation' | 'ordered' | 'total' | 'onProgress'>): void {
  if (!ISOLATIONS.includes(isolation)) {
    const choices = ISOLATIONS.map((choice) => `'${choice}'`).join(', ');
    throw new InvalidOptionError(
      'isolation',
      `isolation must be one of ${choices}, not ${isolation as string}.`,
    );
  }
  if (typeof ordered !== 'boolean') throw new InvalidOptionError('ordered', 'ordered must be true or false.');
  if (total !== undefined) checkCount('total', total, 0);
  if (onProgress !== undefined && typeof onProgress !== 'function') {
    throw new InvalidOptionError('onProgress', 'onProgress must be a function.');
  }
}
