import type { Paint } from '../paint.js';
import { printable } from '../note.js';
import type { Finding } from './check.js';

const SIGNS = { ok: '✓', note: '!', failed: '✗', skipped: '-' } as const;
const FORMATS = { ok: 'green', note: 'yellow', failed: 'red', skipped: 'dim' } as const;
const WIDTH = 'puppeteer bidi'.length;

/** A finding for a person: a line for what was found, further ones for the rest of it and for what to do. */
export function describeFinding({ check, status, detail, advice, elapsed }: Finding, paint: Paint): string {
  const time = status === 'skipped' ? '' : paint('dim', ` (${elapsed} ms)`);
  const [first, ...rest] = printable(detail).split('\n');
  const head = `${paint(FORMATS[status], `${SIGNS[status]} ${check.padEnd(WIDTH)}`)}  ${first}${time}`;
  const lines = advice === undefined ? rest : [...rest, `-> ${printable(advice)}`];
  return [head, ...lines.map((line) => `${' '.repeat(WIDTH + 4)}${line}`)].join('\n');
}
