import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const GUIDES = readdirSync('examples/guides').filter((name) => name.endsWith('.md'));
const LAST_HEADING = '## When not to use it';

it.each(GUIDES)(
  '%s begins with an example that runs, says when not to use it, and what to read next',
  (name) => {
    expect(faults(readFileSync(`examples/guides/${name}`, 'utf8'))).toEqual([]);
  },
);

it('the check finds a guide without each of these', () => {
  const example = '```ts\n// a.mts\nrun();\n```\n';
  const command = '```sh\nnpx tsx a.mts\n```\n';
  const end = `${LAST_HEADING}\n\n- Never.\n\nNext: [b](b.md).\n`;
  expect(faults(`# A\n\n${example}${command}${end}`)).toEqual([]);
  expect(faults(`# A\n\n${example}${end}`)).toEqual(['a.mts: no command runs it']);
  expect(faults(`# A\n\n${command}${example}${end}`)).toEqual(['a.mts: no command runs it']);
  expect(faults(`# A\n\n${end}`)).toEqual(['no example']);
  expect(faults(`# A\n\n${example}${command}`)).toHaveLength(2);
});

/** What a guide lacks. A program of a guide is a block whose first line is the name of its file. */
function faults(text: string): string[] {
  const programs = [...text.matchAll(/^```ts\n\/\/ ([\w-]+\.(?:mts|spec\.ts|test\.ts))\n/gm)];
  const notRun = programs.filter(({ index, 1: file }) => {
    const later = text.slice(index).matchAll(/^```sh\n([^]*?)^```/gm);
    return ![...later].some(([, commands]) => commands!.split(/\s+/).includes(file!));
  });
  const headings = text.match(/^## .+$/gm) ?? [];
  const paragraphs = text.trim().split('\n\n');
  return [
    ...(programs.length > 0 ? [] : ['no example']),
    ...notRun.map(([, file]) => `${file}: no command runs it`),
    ...(headings.at(-1) === LAST_HEADING ? [] : [`the last heading is not "${LAST_HEADING}"`]),
    ...(/^Next: .*\]\(/.test(paragraphs.at(-1)!) ? [] : ['the last paragraph is not "Next: …", with links']),
  ];
}
