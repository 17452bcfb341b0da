/**
 * `npm run shape`: what one must read to change the source, as a table of checks, their values and their bounds, and below it what was
 * counted. A look is a function that receives a message and takes it apart; one that only passes it on is none. Fails if a bound is missed. Nothing but the bounds is written here: the rest is measured in leases of a local pool, in the
 * memory of the process, and in the syntax trees.
 */
import { readdirSync } from 'node:fs';
import { posix } from 'node:path';
import {
  circlesOf,
  FOLDERS,
  namesOfFeatures,
  sourcePaths,
  sourceText,
  targetsOf,
} from '../structure/imports.js';
import type { Table } from './heap.js';
import { measureLeases, type Place } from './run-time.js';

/** The interfaces whose members are counted: file and name. */
const INTERFACES = {
  LeaseFeature: ['lease/feature', 'LeaseFeature'],
  'the context that its hooks receive': ['lease/feature', 'FeatureContext'],
  'a layer': ['wire/layer', 'Layer'],
  'what `connect` of a feature receives': ['drivers/extension', 'Opening'],
  'what it returns': ['drivers/extension', 'ConnectExtension'],
} as const;

const MEMBERS: Readonly<Record<keyof typeof INTERFACES, number>> = {
  LeaseFeature: 10,
  'the context that its hooks receive': 10,
  'a layer': 3,
  'what `connect` of a feature receives': 8,
  'what it returns': 4,
};

/** Where the text of a message is read. */
const OF_READING = /\(src\/(shared\/.*|wire\/(message|large-message|forms))\.ts:/;

const NEAR_THE_WIRE = ['wire', 'drivers', 'clean'];

interface Check {
  readonly name: string;
  readonly value: number;
  readonly bound: number;
  readonly counted: readonly string[];
}

const checks: Check[] = [];

function check(name: string, bound: number, counted: readonly string[], value = counted.length): void {
  checks.push({ name, value, bound, counted });
}

const { bare, full, lease, pool } = await measureLeases();
// The heap of the leases is smaller without the compiler.
const { Source } = await import('./source.js');
const paths = sourcePaths();
const source = new Source(paths);

function checkLooks(name: string, bound: number, places: readonly Place[]): void {
  const looks = places.flatMap((place) => source.look(place) ?? []);
  if (looks.length === 0) throw new Error(`No ${name} was seen.`);
  const reading = looks.filter(({ name: one, reads }) => reads && !OF_READING.test(one));
  const listed = looks.map(({ name: one, reads }) => {
    const what = reads ? 'looks at it' : 'passes it on';
    return `${OF_READING.test(one) ? 'reads its text' : what}: ${one}`;
  });
  // To read its text is one look.
  check(name, bound, listed.sort(), reading.length + 1);
}

/** The classes that keep something, each with the fields in which it does. */
function classesOf(tables: readonly Table[]): string[] {
  const fields = new Map<string, Set<string>>();
  for (const { file, place } of tables) {
    const [name, ...field] = place.split('.');
    const key = `${name} (src/${file}.ts)`;
    fields.set(key, (fields.get(key) ?? new Set()).add(field.join('.')));
  }
  return [...fields].map(([name, all]) => `${name}: ${[...all].sort().join(', ')}`).sort();
}

function checkRunTime(): void {
  for (const [which, { event, response }] of [
    ['a lease without an option', bare],
    ['a lease with each feature', full],
  ] as const) {
    checkLooks(`looks at an event that no feature wants, in ${which}`, 7, event);
    checkLooks(`looks at a response to a command of the library, in ${which}`, 3, response);
  }
  const known = lease.withKeys.filter(({ file }) => !file.startsWith('recorder/'));
  check("classes that keep sessions or targets (without the recorder's)", 2, classesOf(known));
  check(
    'classes with a map of commands in flight',
    2,
    classesOf([...lease.withCapacity, ...pool.withCapacity]),
  );
  const clients = paths.flatMap((path) => source.clients(path).map((name) => `${name} (src/${path}.ts)`));
  check('CDP clients', 1, clients);
}

function reachOf(path: string): string[] {
  const reached = new Set<string>();
  const visit = (from: string): void => {
    for (const to of targetsOf(from).filter((one) => paths.includes(one) && !reached.has(one))) {
      reached.add(to);
      visit(to);
    }
  };
  visit(path);
  return [...reached].filter((one) => one !== path).sort();
}

/** Assignments to fields of what is not `this`, by line. */
function foreignAssignments(path: string): string[] {
  const isForeign = /^\s*(?!this\b)\w+(\.\w+)*\.\w+\s*((\+\+|--);|([+?|&-]*)=[^=>])/;
  const found = sourceText(path)
    .split('\n')
    .filter((line) => isForeign.test(line));
  return found.map((line) => `src/${path}.ts: ${line.trim()}`);
}

function checkFiles(): void {
  for (const [file, bound] of [
    ['lease/feature', 25],
    ['lease/open-lease', 85],
  ] as const)
    check(`files that src/${file}.ts reaches by imports`, bound, reachOf(file));
  const imported = sourcePaths('features').flatMap((path) => targetsOf(path));
  const near = imported.filter((to) => NEAR_THE_WIRE.includes(to.split('/')[0]!));
  check('files of wire/, drivers/ and clean/ that features import', 8, [...new Set(near)].sort());
  const folders = [...NEAR_THE_WIRE, 'lease', ...FOLDERS.map((name) => posix.join('features', name))];
  const sizes = folders
    .map((folder) => [sourcePaths(folder).length, folder] as const)
    .sort(([a], [b]) => b - a);
  const listed = sizes.map(([size, folder]) => `${folder}/: ${size}`);
  check(
    'most .ts files in one folder of wire/, drivers/, clean/, lease/, or of one feature',
    20,
    listed,
    sizes[0]![0],
  );
  const inner = [...NEAR_THE_WIRE, 'lease'].flatMap((folder) => sourcePaths(folder));
  const named = inner.flatMap((path) => namesOfFeatures(path).map((name) => `${name} (src/${path}.ts)`));
  check('names of features in lease/, wire/, drivers/, clean/', 0, named);
  check(
    "assignments to another object's fields in lease/",
    0,
    sourcePaths('lease').flatMap(foreignAssignments),
  );
  check(
    'import circles',
    0,
    circlesOf(paths).map((circle) => circle.join(' → ')),
  );
  const lines = (of: readonly string[]) =>
    of.reduce((sum, path) => sum + sourceText(path).split('\n').length - 1, 0);
  const parts = readdirSync('src', { withFileTypes: true }).filter((one) => one.isDirectory());
  const ofParts = parts.map(({ name }) => `${name}/: ${lines(sourcePaths(name))}`);
  check('lines of src', 41_000, ofParts, lines(paths));
}

checkRunTime();
for (const [name, [file, type]] of Object.entries(INTERFACES))
  check(`members of ${name}`, MEMBERS[name as keyof typeof MEMBERS], source.membersOf(file, type));
checkFiles();

const width = Math.max(...checks.map(({ name }) => name.length));
console.log(`${'check'.padEnd(width)}  ${'value'.padStart(6)}  ${'bound'.padStart(6)}`);
for (const { name, value, bound } of checks)
  console.log(
    `${name.padEnd(width)}  ${`${value}`.padStart(6)}  ${`${bound}`.padStart(6)}${value > bound ? '  missed' : ''}`,
  );
for (const { name, value, bound, counted } of checks)
  console.log(`\n${name}: ${value} of ${bound}${['', ...counted].join('\n  ')}`);
process.exitCode = checks.some(({ value, bound }) => value > bound) ? 1 : 0;
