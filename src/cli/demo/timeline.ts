import { stripVTControlCharacters } from 'node:util';
import type { Paint } from '../paint.js';

/** Prints steps as they happen, each with the seconds since the start. */
export class Timeline {
  readonly #began = performance.now();
  readonly #paint: Paint;

  constructor(paint: Paint) {
    this.#paint = paint;
  }

  add(who: string, what: string, format: Parameters<Paint>[0] = 'reset'): void {
    const seconds = ((performance.now() - this.#began) / 1000).toFixed(2).padStart(6);
    // Text of a page or a service may hold anything: it must not steer the terminal.
    const text = stripVTControlCharacters(what);
    const time = this.#paint('dim', `${seconds} s`);
    process.stdout.write(`${time}  ${this.#paint(format, `${who.padEnd(WIDTH)}  ${text}`)}\n`);
  }
}

const WIDTH = 'playwright cdp'.length;
