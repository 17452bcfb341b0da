import { expect, it } from 'vitest';
import { runHere, startCli } from './support.js';

it('shows what to try first, in 20 lines with commands that exist, without a command', async () => {
  const { code, stdout, stderr } = await startCli([]).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const lines = stdout.trimEnd().split('\n');
  expect(lines.length).toBeLessThanOrEqual(20);
  const shown = [...stdout.matchAll(/pooled-browser ([a-z]+)\b/g)].map(([, name]) => name!).slice(1);
  expect(shown[0]).toBe('demo');
  const { stdout: help } = await runHere(['--help']);
  for (const name of shown) expect(help).toMatch(new RegExp(`^ {2}${name} `, 'm'));
});
