import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { prepareFolder } from '../files.js';
import { ArtifactFolder } from './artifact-files.js';
import type { Observation } from '../../drivers/connector.js';
import { inTime } from '../../lease/in-time.js';
import type { StepOf } from '../../shared/telemetry.js';
import type { FeatureContext, LeaseFeature, Work, WorkEnd } from '../../lease/feature.js';
import { raceAbort, raceTimeout } from '../../shared/abort.js';
import { clock } from '../../shared/clock.js';
import { asError, duration, InvalidOptionError } from '../../shared/errors.js';
import { ArtifactError } from '../../shared/lease-errors.js';
import { makeTemporaryFolder } from '../../shared/temporary-folder.js';
import { ConsoleLog } from './console-log.js';
import { NO_TRACE, type ArtifactsResult, type ArtifactsSettings, type ArtifactsSteps } from './options.js';

/** Time for everything that needs the browser, in ms. */
const BROWSER_TIMEOUT = 10_000;
/** Time with the disk, in ms: a disk that does not respond must not delay the release. */
const TIMEOUT = 15_000;

/** Time in ms of a hook, which the feature's own timeouts must not exceed: a trace is stopped, and files are written. */
const HOOK_TIMEOUT = 2 * TIMEOUT;

type Context = FeatureContext<StepOf<ArtifactsSteps>>;
type Connection = NonNullable<Work['connection']>;

/** The option `artifacts`: files that show what happened in the browser, of a run, a task or a test. */
export class Artifacts implements LeaseFeature {
  readonly needs = { time: HOOK_TIMEOUT };
  readonly #options: ArtifactsSettings;
  /** The signal of the caller. */
  readonly #signal: AbortSignal | undefined;
  /** Paths of the artifacts of the run. */
  readonly #paths: string[] = [];
  readonly #collectors = new Set<ArtifactCollector>();
  readonly summary: ArtifactsResult = { artifacts: this.#paths };

  constructor(options: ArtifactsSettings, signal: AbortSignal | undefined) {
    this.#options = options;
    this.#signal = signal;
  }

  async prepare(): Promise<void> {
    await prepareFolder(this.#options.folder, 'artifacts.folder');
  }

  async pause(): Promise<() => Promise<void>> {
    const resumes = await Promise.all([...this.#collectors].map((one) => one.pause()));
    return async () => void (await Promise.all(resumes.map((resume) => resume())));
  }

  async begin(work: Work<StepOf<ArtifactsSteps>>) {
    const collector = await ArtifactCollector.begin(work, this.#options, this.#signal);
    if (!collector) return undefined;
    this.#collectors.add(collector);
    return async (end: WorkEnd | undefined): Promise<ArtifactsResult> => {
      this.#collectors.delete(collector);
      const artifacts = await collector.collect(end);
      if (work.kind === 'run') this.#paths.push(...artifacts);
      return { artifacts };
    };
  }
}

/**
 * Observes pages during one run, task or test, and collects its artifacts. Its holder must call `collect`. A failure is
 * in `cleanupErrors` of the lease, and never fails the run.
 */
export class ArtifactCollector {
  readonly #lease: Context;
  readonly #connection: Connection;
  readonly #options: ArtifactsSettings;
  readonly #signal: AbortSignal | undefined;
  readonly #observation: Observation;
  readonly #log = new ConsoleLog();
  readonly #errors: Error[] = [];
  /** The traces before each pause. */
  readonly #parts: Promise<Buffer | undefined>[] = [];
  #isTracing = false;
  #isPaused = false;
  #isOver = false;

  /** Resolves to undefined if the connector does not observe pages, or fails to. @param signal The caller's: no file is waited for after an abort. */
  static async begin(
    work: Work<StepOf<ArtifactsSteps>>,
    options: ArtifactsSettings,
    signal: AbortSignal | undefined,
  ): Promise<ArtifactCollector | undefined> {
    const { kind, lease, connection, handles } = work;
    if (kind === 'lease' || !connection?.observe || !handles) return undefined;
    let collector: ArtifactCollector;
    try {
      collector = new ArtifactCollector(work, connection, options, signal);
    } catch (cause) {
      const message = `There are no artifacts, because the pages cannot be observed: ${asError(cause).message}`;
      lease.addError(new ArtifactError(message, { sessionId: lease.sessionId, cause }));
      return undefined;
    }
    if (options.trace) await collector.#startTrace();
    return collector;
  }

  private constructor(
    { lease, handles = {}, scope }: Work<StepOf<ArtifactsSteps>>,
    connection: Connection,
    options: ArtifactsSettings,
    signal: AbortSignal | undefined,
  ) {
    this.#lease = lease;
    this.#connection = connection;
    this.#options = options;
    this.#signal = signal;
    const add: ConsoleLog['add'] = (report) => this.#isPaused || this.#log.add(report);
    const onReport = options.console ? add : undefined;
    this.#observation = connection.observe!({ handles, scope, onReport });
  }

  /** Drops what pages report, and records no trace, until the returned function is called. Neither rejects. */
  async pause(): Promise<() => Promise<void>> {
    this.#isPaused = true;
    const { trace } = this.#options;
    if (this.#isTracing) await this.#endPart();
    return async () => {
      this.#isPaused = false;
      if (trace && !this.#isOver) await this.#startTrace();
    };
  }

  /** Ends the observation, and resolves with the paths of the files. Never rejects. @param end Undefined: no file is wanted. */
  async collect(end: WorkEnd | undefined): Promise<readonly string[]> {
    this.#isOver = true;
    const isWanted = end && (end.failed || this.#options.on === 'always');
    const paths = isWanted ? await this.#write(end) : [];
    if (!isWanted && this.#isTracing)
      await this.#inTime(() => this.#observation.trace!.stop()).catch(() => {});
    try {
      this.#observation.stop();
    } catch (cause) {
      const { sessionId, addError } = this.#lease;
      const message = `The pages may still be observed: ${asError(cause).message}`;
      addError(new ArtifactError(message, { sessionId, cause }));
    }
    return paths;
  }

  async #startTrace(): Promise<void> {
    const { trace } = this.#observation;
    if (!trace) throw new InvalidOptionError(...NO_TRACE);
    await this.#attempt('trace', async () => {
      await this.#inTime(() => trace.start());
      this.#isTracing = true;
    });
  }

  /** Ends the trace. Its part is kept in memory until somebody wants it. */
  async #endPart(): Promise<void> {
    this.#isTracing = false;
    const folder = makeTemporaryFolder('artifacts');
    const path = join(folder, 'trace.zip');
    const part = this.#attempt('trace', async () => {
      await this.#inTime(() => this.#observation.trace!.stop(path));
      return readFile(path);
    });
    this.#parts.push(part);
    await part;
    await rm(folder, { recursive: true, force: true }).catch(() => {});
  }

  async #write(end: WorkEnd): Promise<readonly string[]> {
    const { sessionId, addError, emit } = this.#lease;
    const late = () => new Error(`the disk did not respond within ${duration(TIMEOUT)}`);
    const write = () => raceTimeout(TIMEOUT, () => this.#writeFiles(end), late);
    const paths = (await this.#attempt('folder', write)) ?? [];
    this.#errors.forEach(addError);
    emit({ type: 'artifacts-collected', sessionId, paths, errors: this.#errors });
    return paths;
  }

  async #writeFiles({ name, isReachable }: WorkEnd): Promise<readonly string[]> {
    const folder = await ArtifactFolder.create(this.#options.folder, name);
    const log = this.#writeLog(folder);
    const pages = isReachable ? [this.#writeScreenshots(folder)] : [];
    const traces = this.#writeTraces(folder, isReachable);
    const paths = (await Promise.all([log, ...pages, traces])).flat().filter((path) => path !== undefined);
    if (paths.length === 0) await folder.remove();
    return paths;
  }

  async #writeLog(folder: ArtifactFolder): Promise<string | undefined> {
    const { text } = this.#log;
    if (text === '') return undefined;
    return this.#attempt('console log', () => folder.write('console.jsonl', text));
  }

  async #writeScreenshots(folder: ArtifactFolder): Promise<(string | undefined)[]> {
    const start = clock.now();
    const pages = this.#options.screenshot ? this.#observation.screenshots() : [];
    const paths: (string | undefined)[] = [];
    for (const [index, take] of pages.entries()) {
      const name = index === 0 ? 'screenshot.png' : `screenshot-${index + 1}.png`;
      const write = async () => folder.write(name, await this.#inTime(take, start));
      paths.push(await this.#attempt('screenshot', write));
    }
    return paths;
  }

  async #writeTraces(folder: ArtifactFolder, isReachable: boolean): Promise<(string | undefined)[]> {
    if (this.#isTracing && isReachable) await this.#endPart();
    const parts = (await Promise.all(this.#parts)).filter((part) => part !== undefined);
    const write = (part: Buffer, index: number) =>
      this.#attempt('trace', () => folder.write(index === 0 ? 'trace.zip' : `trace-${index + 1}.zip`, part));
    return Promise.all(parts.map(write));
  }

  /** Resolves to undefined after a failure, which is reported at the end. */
  async #attempt<T>(what: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (cause) {
      const { sessionId } = this.#lease;
      const message = `The ${what} of the artifacts is missing: ${asError(cause).message}`;
      this.#errors.push(new ArtifactError(message, { sessionId, cause }));
      return undefined;
    }
  }

  /** Waits for the browser, until an abort by the caller. */
  async #inTime<T>(work: () => Promise<T>, start = clock.now()): Promise<T> {
    const timeLeft = Math.max(0, start + BROWSER_TIMEOUT - clock.now());
    return raceAbort(inTime(this.#connection, timeLeft, work), this.#signal);
  }
}
