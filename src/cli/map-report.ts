import { Console } from 'node:console';
import { Writable } from 'node:stream';
import type { RunEvent } from '../calls/events.js';
import type { OutcomeRecord } from '../jobs/outcome.js';
import { describeReplays } from './lease.js';
import { LiveLines } from './live-lines.js';
import { barLines, describeProgress, isIdle, type ShownProgress } from './map-bar.js';
import { FailureSummary } from './map-failures.js';
import { counted, formatNote } from './terminal.js';

type ReplaysEvent = Extract<RunEvent, { type: 'replays' }>;

/** Least time between two progress lines without a terminal, in ms. */
const INTERVAL = 3000;

/** Prints the progress and the end of a job on stderr: a bar at a terminal, otherwise a line from time to time. */
export class MapReport implements Disposable {
  readonly #out: string | undefined;
  readonly #failures = new FailureSummary();
  readonly #console = globalThis.console;
  readonly #start = performance.now();
  /** The latest event of each run: recordings of one session may be in several runs. */
  readonly #replays = new Map<number, ReplaysEvent>();
  #progress: ShownProgress | undefined;
  /** The last progress line. */
  #printed: string | undefined;
  #hasFailed = false;
  /** Number of files. */
  #artifacts = 0;
  #bar: LiveLines | undefined;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param out Where the results go: a file or a queue; `undefined` for stdout.
   * @param interruption What the command does with its running tasks when this signal aborts.
   */
  constructor(out: string | undefined, { signal, text }: { signal: AbortSignal; text: string }) {
    this.#out = out;
    const advice = `${text} and releasing the browsers. Press Ctrl-C again to quit immediately.`;
    signal.addEventListener('abort', () => this.note(advice), { once: true });
    // On the same terminal, results would break the bar.
    const hasBar = process.stderr.isTTY && !(out === undefined && process.stdout.isTTY);
    if (hasBar) this.#bar = new LiveLines(process.stderr);
    // The console output of the script must not break the results or the bar.
    const write = (text: unknown, _encoding: string, done: () => void) => {
      this.#print(String(text));
      done();
    };
    globalThis.console = new Console(new Writable({ write, decodeStrings: false }));
  }

  /** Number of inputs with a result of this job. */
  get finished(): number {
    const { succeeded = 0, failed = 0 } = this.#progress ?? {};
    return succeeded + failed;
  }

  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Browsers leased now. */
  get leases(): number {
    return this.#progress?.leases ?? 0;
  }

  readonly note = (text: string): void => this.#print(formatNote(text));

  show(progress: ShownProgress): void {
    this.#progress = progress;
    if (this.#bar) return this.#bar.show((columns) => barLines(progress, columns));
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const text = describeProgress(this.#progress!);
      if (text === this.#printed && isIdle(this.#progress!)) return;
      this.#printed = text;
      this.note(text);
    }, INTERVAL).unref();
  }

  add(record: OutcomeRecord, artifacts: readonly string[] = []): void {
    this.#artifacts += artifacts.length;
    if (record.status === 'fulfilled') return;
    this.#hasFailed = true;
    this.#failures.add(record.input, record.reason, record.moment);
  }

  /** Prints a reason why the job does not count as a success. */
  fail(text: string): void {
    this.#hasFailed = true;
    this.note(text);
  }

  addReplays(event: ReplaysEvent): void {
    this.#replays.set(event.run, event);
  }

  /**
   * Prints the links of the recordings, the reasons of failed inputs, and a summary.
   *
   * @param artifacts Folder of the artifacts.
   */
  end(isComplete: boolean, artifacts: string | undefined): void {
    const failures = this.#failures.lines();
    const texts = failures.length > 0 ? [failures.join('\n')] : [];
    if (this.#artifacts > 0) texts.push(`Artifacts: ${counted(this.#artifacts, 'file')} in ${artifacts}`);
    this.endWith(...texts, this.#summarize(isComplete));
  }

  /** Prints the links of the recordings, and these texts. */
  endWith(...texts: readonly string[]): void {
    this.#stop();
    for (const event of this.#replays.values()) {
      const failure = event.error ? [`The replays could not be listed: ${event.error.message}`] : [];
      for (const line of [...describeReplays(event), ...failure]) {
        this.note(`session ${event.sessionId}: ${line}`);
      }
    }
    for (const text of texts) this.note(text);
  }

  [Symbol.dispose](): void {
    this.#stop();
    globalThis.console = this.#console;
  }

  /** Leaves the bar on the screen: later messages are printed below it. */
  #stop(): void {
    clearTimeout(this.#timer);
    this.#bar?.end();
    this.#bar = undefined;
  }

  #print(text: string): void {
    if (this.#bar) this.#bar.print(text);
    else process.stderr.write(text);
  }

  #summarize(isComplete: boolean): string {
    const { succeeded = 0, failed = 0, skipped = 0 } = this.#progress ?? {};
    const seconds = ((performance.now() - this.#start) / 1000).toFixed(1);
    const facts = [
      `${isComplete ? 'Finished' : 'Ended early'}: ${succeeded} succeeded`,
      `${failed} failed`,
      ...(skipped > 0 ? [`${skipped} skipped`] : []),
    ];
    const text = `${facts.join(', ')}, in ${seconds} s.`;
    if (isComplete && (failed === 0 || this.#out === undefined)) return text;
    if (this.#out === undefined) return `${text} With --out, a job can be resumed.`;
    return `${text} To ${isComplete ? 'retry the failed inputs' : 'continue'}, add --resume to the same command.`;
  }
}
