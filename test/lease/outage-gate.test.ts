import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { OutageGate } from '../../src/lease/outage-gate.js';
import { rejection } from '../service/support.js';
import { settle } from '../support/played-browser.js';

let origins = 0;
const newGate = () => OutageGate.of(`http://service-${++origins}.example.com/`);
const never = new AbortController().signal;

/** Callers in line: what became of each, in order, and how long each that had its turn was to pause. */
class Line {
  readonly outcomes: [caller: string, outcome: unknown][] = [];
  readonly pauses: number[] = [];
  readonly #gate: OutageGate;
  readonly #callers: Promise<void>[] = [];

  constructor(gate: OutageGate) {
    this.#gate = gate;
  }

  /** One more caller; resolves once it stands in line, or has its turn. */
  async join(caller: string, signal = never, pause = 1): Promise<void> {
    const turn = this.#gate.turn((failures) => {
      this.pauses.push(failures);
      return pause;
    }, signal);
    const told = (outcome: unknown) => void this.outcomes.push([caller, outcome]);
    this.#callers.push(turn.then(told, told));
    await settle();
  }

  async isOver(): Promise<void> {
    await Promise.all(this.#callers);
  }

  /** Waits until so many have been told. */
  async told(count: number): Promise<void> {
    await expect.poll(() => this.outcomes.length).toBe(count);
    await settle();
  }
}

it('is one for all callers of a service, and another for another', () => {
  expect(OutageGate.of('http://a.example.com/')).toBe(OutageGate.of('http://a.example.com/'));
  expect(OutageGate.of('http://a.example.com/')).not.toBe(OutageGate.of('http://b.example.com/'));
});

describe('while a service fails', () => {
  it('its callers ask one at a time, in order, after a pause that grows', async () => {
    const gate = newGate();
    const line = new Line(gate);
    for (const caller of ['a', 'b', 'c']) await line.join(caller);
    await line.told(1);
    expect(line.outcomes).toEqual([['a', true]]);
    gate.probed({ failed: true });
    await line.told(2);
    gate.probed({ failed: true });
    await line.isOver();
    expect(line.outcomes).toEqual([
      ['a', true],
      ['b', true],
      ['c', true],
    ]);
    expect(line.pauses).toEqual([1, 2, 3]);
  });

  it('whoever comes while another pauses waits in line, and may go on with the answer of a third', async () => {
    const gate = newGate();
    const line = new Line(gate);
    const pausing = new AbortController();
    await line.join('a', pausing.signal, 60_000);
    await line.join('b');
    expect(line.outcomes).toEqual([]);
    gate.answered();
    await line.told(1);
    expect(line.outcomes).toEqual([['b', false]]);
    pausing.abort();
    await line.isOver();
  });
});

describe('once a service is back', () => {
  it.each(['whose turn it was', 'of anybody else'])('all go on with the answer %s', async (whose) => {
    const gate = newGate();
    const line = new Line(gate);
    for (const caller of ['a', 'b', 'c']) await line.join(caller);
    await line.told(1);
    if (whose === 'of anybody else') gate.answered();
    else gate.probed({ failed: false });
    await line.isOver();
    expect(line.outcomes).toEqual([
      ['a', true],
      ['b', false],
      ['c', false],
    ]);
  });

  it('its next failure is a first one', async () => {
    for (const open of ['answered', 'probed'] as const) {
      const gate = newGate();
      const line = new Line(gate);
      await line.join('a');
      await line.told(1);
      gate.probed({ failed: true });
      gate[open]({ failed: false });
      await line.join('b');
      await line.told(2);
      expect(line.pauses).toEqual([1, 1]);
    }
  });
});

describe('a caller who leaves', () => {
  it('while it pauses, hands the turn on', async () => {
    const gate = newGate();
    const line = new Line(gate);
    const caller = new AbortController();
    await line.join('a', caller.signal, 60_000);
    await line.join('b');
    caller.abort();
    await line.isOver();
    expect(line.outcomes).toMatchObject([
      ['a', { name: 'AbortError' }],
      ['b', true],
    ]);
  });

  it('while it waits in line, leaves the others their order, and nothing behind', async () => {
    const gate = newGate();
    const line = new Line(gate);
    const caller = new AbortController();
    await line.join('a');
    await line.told(1);
    await line.join('b', caller.signal);
    await line.join('c');
    await line.told(1);
    caller.abort('left');
    await line.told(2);
    gate.probed({ failed: true });
    await line.isOver();
    expect(line.outcomes).toEqual([
      ['a', true],
      ['b', 'left'],
      ['c', true],
    ]);
    expect(getEventListeners(caller.signal, 'abort')).toEqual([]);
  });

  it('just as its turn comes, hands it on', async () => {
    const gate = newGate();
    const line = new Line(gate);
    const caller = new AbortController();
    await line.join('a');
    await line.join('b', caller.signal);
    await line.join('c');
    await line.told(1);
    // In one go: b is woken, and leaves before it hears of it.
    gate.probed({ failed: true });
    caller.abort('left');
    await line.isOver();
    expect(line.outcomes).toEqual([
      ['a', true],
      ['b', 'left'],
      ['c', true],
    ]);
  });

  it('alone, leaves a gate that lets the next one try', async () => {
    const gate = newGate();
    const caller = new AbortController();
    const leaving = rejection(gate.turn(() => 60_000, caller.signal));
    caller.abort();
    await leaving;
    expect(await gate.turn(() => 1, never)).toBe(true);
  });
});
