import { Console } from 'node:console';
import { Writable } from 'node:stream';
import type { MultiBar, SingleBar } from 'cli-progress';
import type { RunEvent } from '../lease/events.js';
import type { MapProgress } from '../map/progress.js';
import { describeReplays } from './lease.js';
import { formatNote } from './terminal.js';

type ReplaysEvent = Extract<RunEvent, { type: 'replays' }>;

/** Least time between two progress lines without a terminal, in ms. */
const INTERVAL = 3000;

/** Prints the progress and the end of a job on stderr: a bar at a terminal, otherwise a line from time to time. */
export class MapReport implements Disposable {
  readonly #out: string | undefined;
  readonly #bars: MultiBar | undefined;
  readonly #console = globalThis.console;
  readonly #start = performance.now();
  /** The latest event of each run: recordings of one session may be in several runs. */
  readonly #replays = new Map<number, ReplaysEvent>();
  #progress: MapProgress | undefined;
  #bar: SingleBar | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @param out File of the results; `undefined` for stdout. */
  static async open(out: string | undefined): Promise<MapReport> {
    // On the same terminal, results would break the bar.
    const hasBar = process.stderr.isTTY && !(out === undefined && process.stdout.isTTY);
    return new MapReport(out, hasBar ? await openBars() : undefined);
  }

  private constructor(out: string | undefined, bars: MultiBar | undefined) {
    this.#out = out;
    this.#bars = bars;
    // The console output of the script must not break the results or the bar.
    const write = (text: unknown, _encoding: string, done: () => void) => {
      this.#print(String(text));
      done();
    };
    globalThis.console = new Console(new Writable({ write, decodeStrings: false }));
  }

  get failed(): number {
    return this.#progress?.failed ?? 0;
  }

  /** Browsers leased now. */
  get leases(): number {
    return this.#progress?.leases ?? 0;
  }

  readonly note = (text: string): void => this.#print(formatNote(text));

  show(progress: MapProgress): void {
    this.#progress = progress;
    if (this.#bars) return this.#showBar(this.#bars, progress);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.note(describeProgress(this.#progress!));
    }, INTERVAL).unref();
  }

  addReplays(event: ReplaysEvent): void {
    this.#replays.set(event.run, event);
  }

  /** Prints the links of the recordings, and a summary. */
  end(isComplete: boolean): void {
    this.#stop();
    for (const event of this.#replays.values()) {
      const failure = event.error ? [`The replays could not be listed: ${event.error.message}`] : [];
      for (const line of [...describeReplays(event), ...failure]) {
        this.note(`session ${event.sessionId}: ${line}`);
      }
    }
    this.note(this.#summarize(isComplete));
  }

  [Symbol.dispose](): void {
    this.#stop();
    globalThis.console = this.#console;
  }

  #showBar(bars: MultiBar, progress: MapProgress): void {
    const { done, skipped, total } = progress;
    const text = describeProgress(progress);
    const format = total === undefined ? '{text}' : '[{bar}] {text}';
    this.#bar ??= bars.create(total ?? 0, 0, { text }, { format });
    this.#bar.update(done + skipped, { text });
  }

  /** Leaves the bar on the screen: later messages are printed below it. */
  #stop(): void {
    clearTimeout(this.#timer);
    if (!this.#bar) return;
    // Without a last update, messages since the last redraw would be lost.
    this.#bars!.update();
    this.#bars!.stop();
    this.#bar = undefined;
  }

  #print(text: string): void {
    if (this.#bar) this.#bars!.log(text);
    else process.stderr.write(text);
  }

  #summarize(isComplete: boolean): string {
    const { done = 0, failed = 0, skipped = 0 } = this.#progress ?? {};
    const seconds = ((performance.now() - this.#start) / 1000).toFixed(1);
    const facts = [
      `${isComplete ? 'Done' : 'Ended early'}: ${done - failed} fulfilled`,
      `${failed} failed`,
      ...(skipped > 0 ? [`${skipped} done before`] : []),
    ];
    const text = `${facts.join(', ')}, in ${seconds} s.`;
    if (isComplete && (failed === 0 || this.#out === undefined)) return text;
    if (this.#out === undefined) return `${text} With --out, a job can be resumed.`;
    return `${text} To ${isComplete ? 'retry the failed inputs' : 'continue'}, add --resume to the same command.`;
  }
}

/** Keeps the cursor and the line wrapping of the terminal: this program may be killed at any time. */
async function openBars(): Promise<MultiBar> {
  const { MultiBar } = await import('cli-progress');
  return new MultiBar({ stream: process.stderr, barsize: 20, linewrap: true, hideCursor: false });
}

/** Describes the progress of a job in one short line. */
function describeProgress({ done, failed, skipped, leases, rate, total, timeLeft }: MapProgress): string {
  const facts = [
    `${done + skipped}${total === undefined ? '' : ` of ${total}`} done`,
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(leases > 0 ? [`${leases} ${leases === 1 ? 'browser' : 'browsers'}`] : []),
    `${rate.toFixed(1)}/s`,
    ...(timeLeft !== undefined && timeLeft > 0 ? [`${describeTime(timeLeft)} left`] : []),
  ];
  return facts.join(', ');
}

function describeTime(milliseconds: number): string {
  const minutes = Math.floor(milliseconds / 60_000);
  return minutes === 0 ? `${Math.ceil(milliseconds / 1000)} s` : `${minutes} min`;
}
