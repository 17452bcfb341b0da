import { expect, it } from 'vitest';
import { readSources } from './sources.js';

const MOST_LINES = 250;

it(`has no source file of more than ${MOST_LINES} lines`, () => {
  const sizes = [...readSources()].map(([path, source]) => ({
    path,
    lines: source.trimEnd().split('\n').length,
  }));
  expect(sizes.filter(({ lines }) => lines > MOST_LINES)).toEqual([]);
});
