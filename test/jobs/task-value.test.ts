import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TaskResultError } from '../../src/index.js';
import { MapBench } from './support.js';

class Price {
  readonly amount: number;
  constructor(amount: number) {
    this.amount = amount;
  }
  /** Methods are not part of the result. */
  discount(): void {}
}
/** As Puppeteer's keyboard over CDP. */
class Keyboard {
  readonly _modifiers = 0;
}

const CYCLIC: Record<string, unknown> = { name: 'a' };
CYCLIC['self'] = CYCLIC;

const checkpoint = join(tmpdir(), 'values.jsonl');
let bench: MapBench;
beforeAll(async () => void (bench = await MapBench.start()));
afterAll(() => bench[Symbol.asyncDispose]());

/** Returns a value from a task whose outcome is stored. */
async function run(value: unknown): Promise<unknown> {
  rmSync(checkpoint, { force: true });
  const [outcome] = await bench.run([1], () => value, { checkpoint });
  if (outcome!.status === 'rejected') throw outcome!.reason;
  return outcome!.value;
}

it.each<[unknown, string]>([
  [() => {}, 'a function. Return data that JSON can hold'],
  [Symbol('a'), 'a symbol.'],
  [1n, 'a bigint. Return String(value).'],
  [{ rows: [CYCLIC] }, 'an object that contains itself as value.rows[0].self.'],
  [{ title: Promise.resolve('a') }, 'a promise as value.title. Add await.'],
  [new Map([['a', 1]]), 'an object of class Map.'],
  [{ rows: [{ click: () => {} }] }, 'a function as value.rows[0].click.'],
  [Number.NaN, 'NaN. Return null.'],
  [{ price: -Infinity }, '-Infinity as value.price. Return null.'],
  [[new Price(Number.NaN)], 'NaN as value[0].amount. Return null.'],
  [new Date(Number.NaN), 'an invalid Date. Return null.'],
  [{ rows: Array(2) }, 'undefined as value.rows[0]. Return null.'],
  [['a', undefined], 'undefined as value[1]. Return null.'],
  [{ shot: Buffer.from('a') }, 'an object of class Buffer as value.shot. Return a string, such as'],
  [[new Float64Array(1)], 'an object of class Float64Array as value[0]. Return a string, such as'],
  [new DataView(new ArrayBuffer(1)), 'an object of class DataView. Return a string'],
  [new ArrayBuffer(1), 'an object of class ArrayBuffer.'],
  [
    { error: Object.assign(new Error('no'), { code: 'E' }) },
    'an object of class Error as value.error. Throw the error',
  ],
  [{ keys: new Keyboard() }, 'an object of class Keyboard as value.keys. Return data'],
])('a value that JSON would store as something else is refused (%#)', async (value, message) => {
  const refused = run(value);
  await expect(refused).rejects.toThrow(`The task returned ${message}`);
  await expect(refused).rejects.toBeInstanceOf(TaskResultError);
});

const SHARED = { a: 1 };

it.each<[string, unknown]>([
  ['nothing', undefined],
  ['null', null],
  ['a nested array', { rows: [[1, 'a', true, null]] }],
  ['an object without a prototype', Object.assign(Object.create(null), { a: 1 })],
  ['the same object twice', [SHARED, SHARED]],
  ['a URL', new URL('https://a.test')],
  ['an object of its own class', new Price(1)],
  ['data with the name of a method', { on: 'monday' }],
  ['optional fields', { a: undefined }],
  ['dates and numbers', { at: new Date(0), n: [-1.5, 0] }],
  ['an internal name of a plain object', { _id: 'of a database' }],
  ['a match', /(?<x>a)/.exec('a')],
])('accepts %s', async (_what, value) => {
  await expect(run(value)).resolves.toBe(value);
});

it('the bytes of a screenshot are refused before they become an array of numbers', async () => {
  const toJSON = () => expect.unreachable('5 MB take 5 s');
  await expect(run({ shot: Object.assign(Buffer.alloc(1), { toJSON }) })).rejects.toThrow('of class Buffer');
});
