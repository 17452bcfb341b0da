import { recordReason, type RecordedReason } from '../jobs/outcome.js';
import { isRecord } from '../shared/json.js';
import { excerpt } from '../shared/redact.js';
import { showInput } from './input-formats.js';
import { counted } from './terminal.js';

/** A reason why inputs failed, with one of these inputs. */
interface FailureGroup {
  readonly reason: string;
  readonly example: unknown;
  /** Link to the moment at which that input failed, in its recording. */
  readonly moment: string | undefined;
  count: number;
}

const LONGEST_REASON = 200;
const LONGEST_INPUT = 100;
/** Maximum number of reasons that are shown, and of reasons that are counted separately. */
const MOST_SHOWN = 10;
const MOST_GROUPS = 1000;

/** Groups the failed inputs of a job by their reason. */
export class FailureSummary {
  readonly #groups = new Map<string, FailureGroup>();
  #count = 0;

  add(input: unknown, recorded: RecordedReason, moment?: string): void {
    this.#count++;
    const reason = describe(recorded);
    const key = withoutDetails(reason, input);
    const group = this.#groups.get(key);
    if (group) group.count++;
    else if (this.#groups.size < MOST_GROUPS)
      this.#groups.set(key, { reason, example: input, moment, count: 1 });
  }

  /** A headline and a line for each reason, the most frequent first. Empty if no input failed. */
  lines(): string[] {
    if (this.#count === 0) return [];
    const groups = [...this.#groups.values()].toSorted((one, other) => other.count - one.count);
    const shown = groups.slice(0, MOST_SHOWN);
    const others = this.#count - shown.reduce((sum, { count }) => sum + count, 0);
    return [
      `${counted(this.#count, 'input')} failed:`,
      ...shown.flatMap(({ reason, example, moment, count }) => [
        `${count} × ${withInput(reason, example, 'for example ')}`,
        ...(moment === undefined ? [] : [`    replay ${moment}`]),
      ]),
      ...(others > 0 ? [`${others} × other reasons`] : []),
    ];
  }
}

/** Describes the error of a task in one line. */
export function describeReason(error: unknown): string {
  return describe(recordReason(error));
}

function describe({ name, message }: RecordedReason): string {
  const [line = ''] = message.trim().split('\n', 1);
  return excerpt(name === undefined ? line : `${name}: ${line}`, LONGEST_REASON);
}

/** Adds the input to a reason, unless the reason names it. */
export function withInput(reason: string, input: unknown, introduction = ''): string {
  const text = showInput(input);
  return reason.includes(text) ? reason : `${reason} (${introduction}${excerpt(text, LONGEST_INPUT)})`;
}

/** Shorter inputs are also parts of ordinary words. */
const SHORTEST_INPUT = 3;

/** The part of a reason that is the same for many inputs: without the input or its fields, URLs and numbers. */
function withoutDetails(reason: string, input: unknown): string {
  const texts = (isRecord(input) ? Object.values(input) : [input]).filter((text) => typeof text === 'string');
  // A field may be a part of a longer one.
  const details = texts
    .filter(({ length }) => length >= SHORTEST_INPUT)
    .toSorted((one, other) => other.length - one.length);
  const general = details.reduce((text, detail) => text.replaceAll(detail, ''), reason);
  return general.replaceAll(/\bhttps?:\S+/g, '').replaceAll(/\d+/g, '0');
}
