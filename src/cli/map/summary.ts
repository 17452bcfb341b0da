import type { MapProgress } from '../../map/progress.js';
import type { ReplaysEvent } from '../../lease/events.js';
import { describeReplays } from '../lease/describe-replays.js';

/** What became of a job, for the person who started it. */
export class Summary {
  /** The last report. */
  progress: Pick<MapProgress, 'done' | 'failed' | 'skipped' | 'leases'> = {
    done: 0,
    failed: 0,
    skipped: 0,
    leases: 0,
  };
  /** True when every input has its outcome. */
  isWhole = false;

  readonly #out: string | undefined;
  readonly #began = performance.now();
  /** By the number of their run: what was told last of it stands. */
  readonly #replays = new Map<number, ReplaysEvent>();

  /** @param out The file of the results, if there is one. */
  constructor(out: string | undefined) {
    this.#out = out;
  }

  addReplays(event: ReplaysEvent & { run: number }): void {
    this.#replays.set(event.run, event);
  }

  get lines(): string[] {
    const links = [...this.#replays.values()].flatMap((event) =>
      describeReplays(event).map((line) => `session ${event.sessionId}: ${line}`),
    );
    return [...links, this.#text];
  }

  get #text(): string {
    const { done, failed, skipped } = this.progress;
    const seconds = ((performance.now() - this.#began) / 1000).toFixed(1);
    const facts = [
      `${this.isWhole ? 'Done' : 'Ended early'}: ${done - failed} fulfilled`,
      `${failed} failed`,
      ...(skipped > 0 ? [`${skipped} done before`] : []),
    ];
    return `${facts.join(', ')}, in ${seconds} s.${this.#nextStep}`;
  }

  get #nextStep(): string {
    const { failed } = this.progress;
    if (this.isWhole && failed === 0) return '';
    if (this.#out === undefined) return this.isWhole ? '' : ' With --out it could be resumed.';
    const what = this.isWhole ? 'To run those that failed again' : 'To go on';
    return ` ${what}: the same command with --resume.`;
  }
}
