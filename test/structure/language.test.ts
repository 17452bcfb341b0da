import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';
import { expect, it } from 'vitest';

/** Wordings that are not used in comments, texts and guides, each with the wording to use instead. */
const WORDING: readonly (readonly [wrong: RegExp, right: string])[] = [
  [/\bg(ive|ives|ave|iven|iving) (\w+ ){0,3}back\b/i, 'release'],
  [/\b(takes?|took|taken) (\w+ )?up\b/i, 'attach, continue, use'],
  [/\bhand(s|ed|ing)? (\w+ )?(on|over|out)\b/i, 'pass, return'],
  [/\blets? (it )?go\b/i, 'release, disconnect'],
  [/\btells? of\b|\b(is|are|was|be) told\b/i, 'report, emit'],
  [/\b(hear|hears|heard|owes?|owed)\b/i, 'receive, must'],
  [/\b(whoever|anybody|nobody|somebody)\b/i, 'the lease holder, another client, or the passive voice'],
  [/\bgo(es)? on\b/i, 'continue'],
  [/\btime-outs?\b/i, 'timeout'],
  [/\bfilm(s|ed)?\b/i, 'recording, video'],
  [/\bfrozen\b/i, 'unresponsive'],
  [/\b(sweeps?|swept|wipes?|tidy|tidies)\b/i, 'clean up'],
  [/\bof (its|their|our) own\b(?! \w)/i, 'its own …, separate'],
  [/\bbeyond the given interface\b/i, 'extension'],
  [/\b(but for|in silence)\b/i, 'except, without a report'],
];

const files = ['src', 'test', 'examples', '.github']
  .flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => posix.join(folder, name)),
  )
  .concat('README.md', 'CHANGELOG.md')
  .filter((path) => /\.(ts|js|mjs|md)$/.test(path) && path !== 'test/structure/language.test.ts');

it('uses the wording of the project in comments, texts and guides', () => {
  expect(files.length).toBeGreaterThan(400);
  expect(files.flatMap((path) => wrongWordings(path, readFileSync(path, 'utf8')))).toEqual([]);
});

it('detects a wrong wording in a comment, a string, a template and a guide, but not in code', () => {
  const code = "/** Gives it\n * back. */\nconst film = 'nobody';\nconst b = ['A film', `${film} goes on`];";
  expect(wrongWordings('a.ts', code)).toEqual([
    'a.ts:1 "Gives it back": write release',
    'a.ts:4 "film": write recording, video',
    'a.ts:4 "goes on": write continue',
  ]);
  expect(wrongWordings('a.md', 'A film.\n`film`\n```ts\nfilm();\n```')).toEqual([
    'a.md:1 "film": write recording, video',
  ]);
});

function wrongWordings(path: string, text: string): string[] {
  return textsOf(path, text).flatMap(({ at, words }) =>
    WORDING.flatMap(([wrong, right]) => {
      const [found] = wrong.exec(words) ?? [];
      if (found === undefined) return [];
      return [`${path}:${text.slice(0, at).split('\n').length} "${found}": write ${right}`];
    }),
  );
}

interface Text {
  /** Position in the file. */
  at: number;
  /** On one line, without the marks of a comment. */
  words: string;
}

/** Returns the texts for people: comments, strings with a space, and guides without their code. */
function textsOf(path: string, text: string): Text[] {
  const oneLine = (words: string) => words.replaceAll(/\s*\n\s*(\*|\/\/)?\s*/g, ' ');
  if (path.endsWith('.md')) {
    const prose = text.replaceAll(/^```[\s\S]*?^```|`[^`\n]+`/gm, (code) => code.replaceAll(/[^\n]/g, ' '));
    return [...prose.matchAll(/(.+\n?)+/g)].map(({ index, 0: words }) => ({
      at: index,
      words: oneLine(words),
    }));
  }
  const { program, comments } = parseSync(path, text);
  const texts = comments.map(({ start, value }) => ({ at: start, words: oneLine(value) }));
  const add = (at: number, words: unknown) => {
    if (typeof words === 'string' && words.includes(' ')) texts.push({ at, words });
  };
  const Literal = ({ start, value }: { start: number; value: unknown }) => add(start, value);
  const TemplateElement = ({ start, value }: { start: number; value: { raw: string } }) =>
    add(start, value.raw);
  new Visitor({ Literal, TemplateElement }).visit(program);
  return texts;
}
