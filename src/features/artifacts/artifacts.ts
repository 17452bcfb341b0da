import type { OpenConnection } from '../../connect/connect-session.js';
import type { Observation, ObserveRequest } from '../../connect/connector.js';
import { raceAbort, raceTimeout } from '../../shared/abort.js';
import { clock } from '../../shared/clock.js';
import { duration, InvalidOptionError } from '../../shared/errors.js';
import { ArtifactError } from '../../shared/lease-errors.js';
import type { ArtifactFolder } from './artifact-files.js';
import { ConsoleLog } from './console-log.js';
import type { Lease } from '../../lease/lease.js';
import { inTime } from '../../lease/link.js';
import { NO_TRACE, type ArtifactsSettings } from '../../lease/options.js';

/** Time for everything that needs the browser, in ms. */
const BROWSER_TIMEOUT = 10_000;
/** Time with the disk, in ms: a disk that does not respond must not delay the release. */
const TIMEOUT = 15_000;

/** Which pages are observed. */
export type ObservedPart<Handles> = Omit<ObserveRequest<Handles>, 'onReport'>;

/** The end of the run, task or test whose artifacts are collected. */
export interface ArtifactEnd {
  /** Part of the name of the folder. */
  readonly name: string;
  readonly failed: boolean;
  /** False if the browser was lost: then only the console log is collected. */
  readonly isReachable: boolean;
}

/**
 * Observes pages during one run, task or test, and collects its artifacts. Its holder must call `collect`. A failure is
 * in `cleanupErrors` of the lease, and never fails the run.
 */
export class ArtifactCollector {
  readonly #lease: Lease<unknown>;
  readonly #connection: OpenConnection<unknown>;
  readonly #options: ArtifactsSettings;
  readonly #observation: Observation;
  readonly #log = new ConsoleLog();
  readonly #errors: Error[] = [];
  #isTracing = false;

  /** Resolves to undefined if the connector does not observe pages, or fails to. */
  static async begin<Handles>(
    lease: Lease<unknown>,
    connection: OpenConnection<Handles>,
    options: ArtifactsSettings,
    part: ObservedPart<Handles>,
  ): Promise<ArtifactCollector | undefined> {
    if (!connection.observe) return undefined;
    let collector: ArtifactCollector;
    try {
      collector = new ArtifactCollector(lease, connection, options, part);
    } catch (cause) {
      const message = `There are no artifacts, because the pages cannot be observed: ${(cause as Error).message}`;
      lease.cleanupErrors.push(new ArtifactError(message, { sessionId: lease.sessionId, cause }));
      return undefined;
    }
    if (options.trace) await collector.#startTrace();
    return collector;
  }

  private constructor(
    lease: Lease<unknown>,
    connection: OpenConnection<unknown>,
    options: ArtifactsSettings,
    part: ObservedPart<unknown>,
  ) {
    this.#lease = lease;
    this.#connection = connection;
    this.#options = options;
    this.#observation = connection.observe!({
      ...part,
      onReport: options.console ? this.#log.add : undefined,
    });
  }

  /** Ends the observation, and resolves with the paths of the files. Never rejects. */
  async collect(end: ArtifactEnd): Promise<readonly string[]> {
    const isWanted = end.failed || this.#options.on === 'always';
    const paths = isWanted ? await this.#write(end) : [];
    if (!isWanted && this.#isTracing)
      await this.#inTime(() => this.#observation.trace!.stop()).catch(() => {});
    try {
      this.#observation.stop();
    } catch (cause) {
      const { sessionId, cleanupErrors } = this.#lease;
      const message = `The pages may still be observed: ${(cause as Error).message}`;
      cleanupErrors.push(new ArtifactError(message, { sessionId, cause }));
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

  async #write(end: ArtifactEnd): Promise<readonly string[]> {
    const { sessionId, cleanupErrors, emit } = this.#lease;
    const late = () => new Error(`the disk did not respond within ${duration(TIMEOUT)}`);
    const write = () => raceTimeout(TIMEOUT, () => this.#writeFiles(end), late);
    const paths = (await this.#attempt('folder', write)) ?? [];
    cleanupErrors.push(...this.#errors);
    emit({ type: 'artifacts-collected', sessionId, paths, errors: this.#errors });
    return paths;
  }

  async #writeFiles({ name, isReachable }: ArtifactEnd): Promise<readonly string[]> {
    // The root entry loads no file functions.
    const { ArtifactFolder } = await import('./artifact-files.js');
    const folder = await ArtifactFolder.create(this.#options.folder, name);
    const log = this.#writeLog(folder);
    const pages = isReachable ? [this.#writeScreenshots(folder), this.#writeTrace(folder)] : [];
    const paths = (await Promise.all([log, ...pages])).flat().filter((path) => path !== undefined);
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

  async #writeTrace(folder: ArtifactFolder): Promise<string | undefined> {
    if (!this.#isTracing) return undefined;
    const stop = (path: string) => this.#inTime(() => this.#observation.trace!.stop(path));
    return this.#attempt('trace', () => folder.save('trace.zip', stop));
  }

  /** Resolves to undefined after a failure, which is reported at the end. */
  async #attempt<T>(what: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (cause) {
      const { sessionId } = this.#lease;
      const message = `The ${what} of the artifacts is missing: ${(cause as Error).message}`;
      this.#errors.push(new ArtifactError(message, { sessionId, cause }));
      return undefined;
    }
  }

  /** Waits for the browser, until an abort by the caller. */
  async #inTime<T>(work: () => Promise<T>, start = clock.now()): Promise<T> {
    const timeLeft = Math.max(0, start + BROWSER_TIMEOUT - clock.now());
    return raceAbort(inTime(this.#connection, timeLeft, work), this.#lease.settings.signal);
  }
}
