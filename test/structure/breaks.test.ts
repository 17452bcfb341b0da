import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { BREAKS } from '../mutation/breaks.js';

const TESTS = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => name.split(/[/\\]/).join('/'));

it.each(BREAKS)('the source has the text that breaks this once: $what', ({ file, from, to, tests }) => {
  const parts = readFileSync(`src/${file}`, 'utf8').split(from);
  expect(parts.length - 1, `${file}: ${from}`).toBe(1);
  expect(to).not.toBe(from);
  expect(tests.length).toBeGreaterThan(0);
  expect(tests.filter((part) => !TESTS.some((name) => name.includes(part)))).toEqual([]);
});
