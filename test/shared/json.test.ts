import { expect, it } from 'vitest';
import { isRecord, parseJson } from '../../src/shared/json.js';
import { isLoopback } from '../../src/shared/urls.js';

it('drops a key __proto__ at any depth', () => {
  const json = parseJson('{"a": [{"__proto__": {"x": 1}, "b": 2}], "__proto__": {"x": 1}}');
  expect(json).toStrictEqual({ a: [{ b: 2 }] });
  expect(Object.hasOwn(json as object, '__proto__')).toBe(false);
});

it.each(['"\\u005f_proto__"', '"__\\u0070roto__"', '"__proto\\u005F_"'])(
  'drops a key __proto__ however it is written: %s',
  (key) => {
    const json = parseJson(`{${key}: {"x": 1}, "b": 2}`);
    expect(Object.keys(json as object)).toEqual(['b']);
  },
);

it('throws a SyntaxError for invalid JSON', () => {
  expect(() => parseJson('{')).toThrow(SyntaxError);
});

it.each([
  [{}, true],
  [Object.create(null), true],
  [new Error('x'), true],
  [[], false],
  [null, false],
  [undefined, false],
  ['text', false],
  [5, false],
])('distinguishes a record from other values', (value, expected) => {
  expect(isRecord(value)).toBe(expected);
});

it.each([
  ['localhost', true],
  ['127.0.0.1', true],
  ['127.255.0.3', true],
  ['[::1]', true],
  ['127.0.0.1.example.com', false],
  ['localhost.example.com', false],
  ['128.0.0.1', false],
  ['0.0.0.0', false],
  ['10.0.0.1', false],
  ['[::]', false],
  ['', false],
])('recognizes whether %s is this machine: %s', (hostname, expected) => {
  expect(isLoopback(hostname)).toBe(expected);
});
