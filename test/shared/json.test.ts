import { expect, it } from 'vitest';
import { isRecord, parseJson } from '../../src/shared/json.js';
import { isLoopback } from '../../src/shared/urls.js';

it('drops a key __proto__ at any depth, however it is written', () => {
  const json = parseJson('{"a": [{"__proto__": {"x": 1}, "b": 2}], "__proto__": {"x": 1}}');
  expect(json).toStrictEqual({ a: [{ b: 2 }] });
  expect(Object.hasOwn(json as object, '__proto__')).toBe(false);
  for (const key of ['"\\u005f_proto__"', '"__\\u0070roto__"', '"__proto\\u005F_"'])
    expect(Object.keys(parseJson(`{${key}: {"x": 1}, "b": 2}`) as object)).toEqual(['b']);
});

it('throws a SyntaxError for invalid JSON', () => {
  expect(() => parseJson('{')).toThrow(SyntaxError);
});

it('distinguishes a record from other values', () => {
  expect([{}, Object.create(null), new Error('x')].map(isRecord)).toEqual([true, true, true]);
  expect([[], null, undefined, 'text', 5].some(isRecord)).toBe(false);
});

it.each([
  ...['localhost', '127.0.0.1', '127.255.0.3', '[::1]'].map((host) => [host, true] as const),
  ...['127.0.0.1.example.com', 'localhost.example.com', ''].map((host) => [host, false] as const),
  ...['128.0.0.1', '0.0.0.0', '10.0.0.1', '[::]'].map((host) => [host, false] as const),
])('recognizes whether %j is this machine: %s', (hostname, expected) => {
  expect(isLoopback(hostname)).toBe(expected);
});
