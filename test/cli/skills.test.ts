import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { expectRefusal, runHere } from './support.js';

const SKILL = readFileSync('skills/pooled-browser/SKILL.md', 'utf8');

/** The name of each guide of the package. */
const GUIDES = [
  ...['examples', 'examples/guides'].flatMap((folder) =>
    readdirSync(folder).flatMap((name) => /^([a-z-]+)\.md$/.exec(name)?.[1] ?? []),
  ),
  ...readdirSync('examples').filter((name) => existsSync(`examples/${name}/README.md`)),
];

it('lists each guide of the package with one line, and prints each of them as it is', async () => {
  const { code, stdout, stderr } = await runHere(['skills']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const lines = stdout.trimEnd().split('\n');
  const topics = lines.map((line) => /^(\S+) {2,}\S.*$/.exec(line)?.[1] ?? line);
  expect(topics).toEqual(expect.arrayContaining(GUIDES));
  expect(lines.filter((line) => line.length > 100)).toEqual([]);
  const printed = new Set<string>();
  for (const topic of topics) {
    const guide = await runHere(['skills', topic]);
    const [, path] = /^pooled-browser: The file of this guide is (.*)\.\n$/.exec(guide.stderr)!;
    expect(guide, topic).toMatchObject({ code: 0, stdout: readFileSync(path!, 'utf8') });
    printed.add(guide.stdout);
  }
  expect(printed.size).toBe(topics.length);
});

it('names the nearest topic for one that does not exist', async () => {
  expectRefusal(await runHere(['skills', 'pyhton']), 'There is no topic pyhton. Did you mean python?');
  expectRefusal(await runHere(['skills', '../../package.json']), 'There is no topic ../../package.json.');
});

it('the skill has the format of Agent Skills and at most 3,000 bytes', () => {
  expect(Buffer.byteLength(SKILL)).toBeLessThanOrEqual(3000);
  const [, name, description] = /^---\nname: (.+)\ndescription: (.+)\n---\n\n# /.exec(SKILL)!;
  expect(name).toBe('pooled-browser');
  // Unquoted, a colon with a space would make it another value of YAML.
  expect(description).not.toMatch(/: | #/);
  expect(description!.length).toBeLessThanOrEqual(1024);
});

it('each command, flag and topic in the skill exists', async () => {
  const commands = [...SKILL.matchAll(/pooled-browser ([a-z-]+)(?: (\S+))?/g)];
  expect(commands.length).toBeGreaterThan(6);
  for (const [, command] of commands)
    expect(await runHere([command!, '--help']), command).toMatchObject({ code: 0 });
  const { stdout: help } = await runHere(['proxy', '--help']);
  for (const flag of ['--keep', '--json'])
    expect([SKILL, help].every((text) => text.includes(flag))).toBe(true);
  const topics = [...SKILL.matchAll(/\bskills ([a-z-]+)/g)].map(([, topic]) => topic!);
  expect(topics.length).toBeGreaterThan(4);
  for (const topic of topics) expect(await runHere(['skills', topic]), topic).toMatchObject({ code: 0 });
});
