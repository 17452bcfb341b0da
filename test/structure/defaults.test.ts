import { readdirSync, readFileSync } from 'node:fs';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';

/** The names in the defaults of the source. */
const NAMES = { MEGABYTE: 1024 ** 2, LARGEST_DOWNLOAD: 1024 ** 3 };
const DOCUMENTED = /@default ([^\n]*?)(?: \([^)]*\))?\n\s*\*\/\s*(?:readonly )?(\w+)\?:/g;

it('each default in a docstring is the default of its check', () => {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  let compared = 0;
  const wrong = files.flatMap((file) => {
    const text = readFileSync(`src/${file}`, 'utf8');
    const checked = defaultsIn(text);
    return [...text.matchAll(DOCUMENTED)].flatMap(([, shown, name]) => {
      // Two sets of options of a file can have the same name.
      const found = checked.get(name!);
      if (!found) return [];
      compared++;
      return found.map(valueOf).includes(valueOf(shown!))
        ? []
        : [`${file}: ${name} is ${shown} in its docstring`];
    });
  });
  expect(wrong).toEqual([]);
  expect(compared).toBeGreaterThan(70);
});

/** The second argument of each `optional(…)`, by the name of its option. */
function defaultsIn(text: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { 1: name, index, 0: head } of text.matchAll(/\b(\w+):\s*optional\(/g)) {
    const [, value] = argumentsAt(text, index + head.length);
    if (value) found.set(name!, [...(found.get(name!) ?? []), value]);
  }
  return found;
}

/** The arguments of a call, from the text behind its parenthesis on. */
function argumentsAt(text: string, start: number): string[] {
  const parts = [''];
  let depth = 0;
  for (const [token] of text.slice(start).matchAll(/'[^'\n]*'|"[^"\n]*"|[^'"]/g)) {
    if (token === ')' && depth === 0) break;
    if (/^[([{]$/.test(token)) depth++;
    if (/^[)\]}]$/.test(token)) depth--;
    if (token === ',' && depth === 0) parts.push('');
    else parts.push(parts.pop()! + token);
  }
  return parts.map((part) => part.trim());
}

function valueOf(code: string): string {
  return JSON.stringify(
    runInNewContext(`[${code}].map((one) => one === Infinity ? 'Infinity' : one)`, { ...NAMES }),
  );
}
