import { Console } from 'node:console';
import { Writable } from 'node:stream';
import type { MultiBar, SingleBar } from 'cli-progress';
import type { MapProgress } from '../../map/progress.js';
import { printable } from '../note.js';
import { describeProgress } from './describe-progress.js';

/** Least milliseconds between two lines where there is no terminal. */
const INTERVAL = 3000;

/** How far the job is, on stderr: a bar at a terminal, and a line now and then elsewhere. */
export class Display implements Disposable {
  readonly #bars: MultiBar | undefined;
  readonly #console = globalThis.console;
  #bar: SingleBar | undefined;
  #lastLine = performance.now();
  /** What the next line will say, once it is due. */
  #nextLine: { text: string; timer: NodeJS.Timeout } | undefined;

  /** @param options.hasResults The results go to stdout: on one terminal they and a bar would tear each other up. */
  static async open({ hasResults }: { hasResults: boolean }): Promise<Display> {
    const hasBar = process.stderr.isTTY && !(hasResults && process.stdout.isTTY);
    return new Display(hasBar ? await openBars() : undefined);
  }

  private constructor(bars: MultiBar | undefined) {
    this.#bars = bars;
    // What the script prints must tear up neither the results nor the bar.
    const write = (text: unknown, _encoding: string, done: () => void) => {
      this.#print(String(text));
      done();
    };
    globalThis.console = new Console(new Writable({ write, decodeStrings: false }));
  }

  /** Says something to the person. */
  readonly note = (text: string): void => this.#print(`pooled-browser: ${printable(text)}\n`);

  show(progress: MapProgress): void {
    const text = describeProgress(progress);
    if (!this.#bars) return this.#showLine(text);
    const { done, skipped, total } = progress;
    const format = total === undefined ? '{text}' : '[{bar}] {text}';
    this.#bar ??= this.#bars.create(total ?? 0, 0, { text }, { format });
    this.#bar.update(done + skipped, { text });
  }

  /** Leaves the bar as it stands: what is said now comes below it. */
  end(): void {
    clearTimeout(this.#nextLine?.timer);
    if (!this.#bar) return;
    // What was said since the last redraw would be lost.
    this.#bars!.update();
    this.#bars!.stop();
    this.#bar = undefined;
  }

  [Symbol.dispose](): void {
    this.end();
    globalThis.console = this.#console;
  }

  /** The last of what was told between two lines is not lost: nothing else may be told for long. */
  #showLine(text: string): void {
    if (this.#nextLine) {
      this.#nextLine.text = text;
      return;
    }
    const wait = INTERVAL - (performance.now() - this.#lastLine);
    const timer = setTimeout(() => this.#showNextLine(), Math.max(0, wait)).unref();
    this.#nextLine = { text, timer };
  }

  #showNextLine(): void {
    this.#lastLine = performance.now();
    this.note(this.#nextLine!.text);
    this.#nextLine = undefined;
  }

  #print(text: string): void {
    if (this.#bar) this.#bars!.log(text);
    else process.stderr.write(text);
  }
}

/** The terminal is left as it is, cursor and wrapping of lines: this program may end at any moment. */
async function openBars(): Promise<MultiBar> {
  const { MultiBar } = await import('cli-progress');
  return new MultiBar({ stream: process.stderr, barsize: 20, linewrap: true, hideCursor: false });
}
