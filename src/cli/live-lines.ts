import { printable } from '../shared/redact.js';
import { paintFor, type Format, type Paint } from './terminal.js';

/** A piece of a line, in one format. */
export type Span = readonly [text: string, format?: Format | undefined];

/** Returns the lines for a terminal of this width, in columns. */
type Render = (columns: number) => readonly (readonly Span[])[];

/** The assumed size of a terminal that does not report its size. */
const COLUMNS = 80;
const ROWS = 24;

/** Time in ms after a message until the lines are drawn again, so that many messages cause one drawing. */
const DELAY = 50;

/**
 * Lines below everything else that is printed at a terminal, drawn again whenever they change. Each fits into one row of
 * the screen. The cursor stays visible and lines wrap as usual, because this program may be killed at any time.
 */
export class LiveLines {
  readonly #stream: NodeJS.WriteStream;
  readonly #paint: Paint;
  #render: Render = () => [];
  /** Widths of the lines on the screen, in columns. */
  #drawn: readonly number[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
    this.#paint = paintFor(stream);
    stream.on('resize', this.#draw);
  }

  show(render: Render): void {
    this.#render = render;
    this.#draw();
  }

  /** Prints lines of text above. */
  print(text: string): void {
    this.#stream.write(this.#erase() + text);
    this.#timer ??= setTimeout(this.#draw, DELAY);
  }

  /** Leaves only the first line on the screen. */
  end(): void {
    const render = this.#render;
    this.show((columns) => render(columns).slice(0, 1));
    if (this.#drawn.length > 0) this.#stream.write('\n');
    this.#stream.off('resize', this.#draw);
  }

  readonly #draw = (): void => {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const erase = this.#erase();
    const { columns, rows } = this.#stream;
    // Some terminals wrap a line that fills their last column.
    const width = Math.max(1, (columns || COLUMNS) - 1);
    const lines = this.#render(width).slice(0, Math.max(1, (rows || ROWS) - 1));
    const fitted = lines.map((line) => fit(line, width));
    this.#drawn = fitted.map((line) => columnsOf(line.map(([text]) => text).join('')));
    const painted = fitted.map((line) => line.map((span) => this.#paintSpan(span)).join(''));
    this.#stream.write(erase + painted.join('\n'));
  };

  #paintSpan([text, format]: Span): string {
    return format === undefined || text === '' ? text : this.#paint(format, text);
  }

  /** Returns the codes that erase the drawn lines. A terminal that became narrower has wrapped them. */
  #erase(): string {
    if (this.#drawn.length === 0) return '';
    const columns = this.#stream.columns || COLUMNS;
    const rows = this.#drawn.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / columns)), 0);
    this.#drawn = [];
    return `\r${rows > 1 ? `\x1b[${rows - 1}A` : ''}\x1b[J`;
  }
}

/** Cuts a line off at a width, in columns, and escapes it. */
function fit(line: readonly Span[], columns: number): Span[] {
  const fitted: Span[] = [];
  let columnsLeft = columns;
  for (const [text, format] of line) {
    const clean = printable(text);
    const width = columnsOf(clean);
    fitted.push([width <= columnsLeft ? clean : cut(clean, columnsLeft), format]);
    columnsLeft -= width;
    if (columnsLeft <= 0) break;
  }
  return fitted;
}

function cut(text: string, columns: number): string {
  let columnsLeft = columns - 1;
  const kept = charactersOf(text).filter((character) => (columnsLeft -= columnsOf(character)) >= 0);
  return `${kept.join('')}…`;
}

/** East Asian characters and emoji, which take two columns. */
const WIDE =
  /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{20000}-\u{3FFFD}]|\p{Emoji_Presentation}|\uFE0F/u;

function columnsOf(text: string): number {
  return charactersOf(text).reduce((sum, character) => sum + (WIDE.test(character) ? 2 : 1), 0);
}

const CHARACTERS = new Intl.Segmenter();

/** Splits a text into the characters that a reader sees: an accent belongs to its letter. */
function charactersOf(text: string): string[] {
  return Array.from(CHARACTERS.segment(text), ({ segment }) => segment);
}
