import type { OpenConnection } from '../connect/connect-session.js';
import type { Observation, ObserveRequest } from '../connect/connector.js';
import type { SocketEnd } from '../connect/socket.js';
import { raceAbort, raceEnd, raceTimeout } from '../shared/abort.js';
import { clock } from '../shared/clock.js';
import { InvalidOptionError } from '../shared/errors.js';
import { ArtifactError } from '../shared/lease-errors.js';
import type { ArtifactFolder } from './artifact-files.js';
import { ConsoleLog } from './console-log.js';
import type { RunStep } from './events.js';
import { NO_TRACE, type ArtifactsSettings, type LeaseSettings } from './options.js';

/** Time for everything that needs the browser, in ms. */
const TIMEOUT = 10_000;

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

/** The lease in which pages are observed. */
interface ObservedLease {
  readonly settings: LeaseSettings;
  readonly sessionId: string;
  readonly cleanupErrors: Error[];
  readonly emit: (step: RunStep) => void;
}

/**
 * Observes pages during one run, task or test, and collects its artifacts. Its holder must call `collect`. A failure is
 * in `cleanupErrors` of the lease, and never fails the run.
 */
export class ArtifactCollector {
  readonly #lease: ObservedLease;
  readonly #ended: Promise<SocketEnd>;
  readonly #options: ArtifactsSettings;
  readonly #observation: Observation;
  readonly #log: ConsoleLog;
  readonly #errors: Error[] = [];
  #isTracing = false;

  /** Resolves to undefined if the connector does not observe pages, or fails to. */
  static async begin<Handles>(
    lease: ObservedLease,
    connection: OpenConnection<Handles>,
    options: ArtifactsSettings,
    part: ObservedPart<Handles>,
  ): Promise<ArtifactCollector | undefined> {
    const log = new ConsoleLog();
    const request = { ...part, onReport: options.console ? log.add : undefined };
    const observation = startObservation(lease, connection, request);
    if (!observation) return undefined;
    const collector = new ArtifactCollector(lease, connection.ended, { options, observation, log });
    if (options.trace) await collector.#startTrace();
    return collector;
  }

  private constructor(
    lease: ObservedLease,
    ended: Promise<SocketEnd>,
    parts: { options: ArtifactsSettings; observation: Observation; log: ConsoleLog },
  ) {
    this.#lease = lease;
    this.#ended = ended;
    this.#options = parts.options;
    this.#observation = parts.observation;
    this.#log = parts.log;
  }

  /** Ends the observation, and resolves with the paths of the files. Never rejects. */
  async collect(end: ArtifactEnd): Promise<readonly string[]> {
    const isWanted = end.failed || this.#options.on === 'always';
    const paths = isWanted ? await this.#write(end) : [];
    if (!isWanted && this.#isTracing) {
      await this.#inTime(this.#observation.trace!.stop()).catch(() => {});
    }
    this.#observation.stop();
    return paths;
  }

  async #startTrace(): Promise<void> {
    const { trace } = this.#observation;
    if (!trace) throw new InvalidOptionError(...NO_TRACE);
    await this.#attempt('trace', async () => {
      await this.#inTime(trace.start());
      this.#isTracing = true;
    });
  }

  async #write({ name, isReachable }: ArtifactEnd): Promise<readonly string[]> {
    const { sessionId, cleanupErrors, emit } = this.#lease;
    const written = await this.#attempt('folder', async () => {
      // The root entry loads no file functions.
      const { ArtifactFolder } = await import('./artifact-files.js');
      const folder = await ArtifactFolder.create(this.#options.folder, name);
      const log = this.#writeLog(folder);
      const pages = isReachable ? [this.#writeScreenshots(folder), this.#writeTrace(folder)] : [];
      const paths = (await Promise.all([log, ...pages])).flat().filter((path) => path !== undefined);
      if (paths.length === 0) await folder.remove();
      return paths;
    });
    const paths = written ?? [];
    cleanupErrors.push(...this.#errors);
    emit({ type: 'artifacts-collected', sessionId, paths, errors: this.#errors });
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
      const write = async () => folder.write(name, await this.#inTime(take(), start));
      paths.push(await this.#attempt('screenshot', write));
    }
    return paths;
  }

  async #writeTrace(folder: ArtifactFolder): Promise<string | undefined> {
    if (!this.#isTracing) return undefined;
    const stop = (path: string) => this.#inTime(this.#observation.trace!.stop(path));
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

  /** Waits for the browser, while the lease and its connection last. */
  async #inTime<T>(work: Promise<T>, start = clock.now()): Promise<T> {
    const ended = (how: SocketEnd) => new Error(`The WebSocket ended (${how}).`);
    const late = () => new Error(`The browser did not respond within ${TIMEOUT} ms.`);
    const connected = () => raceEnd(work, this.#ended, ended);
    const timeLeft = Math.max(0, start + TIMEOUT - clock.now());
    return raceAbort(raceTimeout(timeLeft, connected, late), this.#lease.settings.signal);
  }
}

function startObservation<Handles>(
  { cleanupErrors, sessionId }: ObservedLease,
  connection: OpenConnection<Handles>,
  request: ObserveRequest<Handles>,
): Observation | undefined {
  try {
    return connection.observe?.(request);
  } catch (cause) {
    const message = `There are no artifacts, because the pages cannot be observed: ${(cause as Error).message}`;
    cleanupErrors.push(new ArtifactError(message, { sessionId, cause }));
    return undefined;
  }
}
