import { arrows, runTimeImports } from './rules.js';
import { lineAt, parse, UNREADABLE, type Import, type Sources } from './read-imports.js';

/** Imports that no arrow in rules.ts allows, each with file, line and rule. */
export function forbiddenArrows(imports: readonly Import[], sources: Sources): string[] {
  return imports.flatMap((one) => {
    const rule = brokenRule(one, sources);
    return rule === undefined ? [] : [`${place(one)} imports ${one.specifier}: ${rule}`];
  });
}

function brokenRule({ from, to, specifier }: Import, sources: Sources): string | undefined {
  if (specifier === UNREADABLE && runTimeImports.includes(from)) return undefined;
  if (specifier === UNREADABLE) return 'import() takes a literal, so that a check can read it';
  if (to === undefined) return undefined;
  if (!sources.has(to)) return `there is no ${to}`;
  const [room, target] = [roomOf(from), roomOf(to)];
  const allowed = arrows[room];
  if (!allowed) return `the folder ${room}/ has no arrows in test/structure/rules.ts`;
  if (room === target || allowed.includes(target) || allowed.includes(to.replace('src/', '')))
    return undefined;
  return `${room} may import ${allowed.join(', ') || 'nothing of ours'}`;
}

/** The folder directly under src/ that a file belongs to. */
function roomOf(path: string): string {
  const [, room, ...rest] = path.split('/');
  return rest.length === 0 ? 'entry' : room!;
}

/**
 * Circles of imports, at least one of every knot. Types and `import()` count too: a circle of types is a circle of ideas,
 * and one that is lazy today loads in the wrong order as soon as someone makes it static.
 */
export function cycles(imports: readonly Import[]): string[] {
  const found = new Map<string, string>();
  const finished = new Set<string>();
  const visit = (file: string, path: readonly Import[]): void => {
    const start = path.findIndex(({ from }) => from === file);
    if (start !== -1) {
      const circle = path.slice(start);
      found.set(
        circle
          .map(({ from }) => from)
          .sort()
          .join(),
        `circle: ${circle.map(place).join(' -> ')} -> ${file}`,
      );
      return;
    }
    if (finished.has(file)) return;
    for (const one of imports) if (one.from === file && one.to !== undefined) visit(one.to, [...path, one]);
    finished.add(file);
  };
  for (const { from } of imports) visit(from, []);
  return [...found.values()];
}

/** How the packages of the list load as soon as `entry` is imported: the chain of imports that leads there. */
export function loadedPackages(
  imports: readonly Import[],
  entry: string,
  packages: readonly string[],
): string[] {
  const chains = new Map<string, readonly Import[]>([[entry, []]]);
  const found: string[] = [];
  for (const [file, chain] of chains) {
    for (const one of imports) {
      if (one.from !== file || one.kind !== 'value') continue;
      const next = [...chain, one];
      if (one.to !== undefined && !chains.has(one.to)) chains.set(one.to, next);
      if (packages.includes(packageOf(one)))
        found.push(`${next.map(place).join(' -> ')} -> ${one.specifier}`);
    }
  }
  return found;
}

/** Files of src/ itself that hold more than `export … from`. */
export function entriesWithCode(sources: Sources): string[] {
  return [...sources].flatMap(([path, source]) => {
    if (roomOf(path) !== 'entry') return [];
    const statement = parse(path, source).body.find(({ type, ...node }) => {
      const reExports = type === 'ExportAllDeclaration' || type === 'ExportNamedDeclaration';
      return !reExports || !(node as { source?: unknown }).source;
    });
    if (!statement) return [];
    return [
      `${path}:${lineAt(source, statement.start)} is no "export … from": an entry file holds exports only`,
    ];
  });
}

/** Packages that load but that package.json does not promise to install. */
export function undeclaredPackages(imports: readonly Import[], declared: readonly string[]): string[] {
  return imports
    .filter(({ to, kind, specifier }) => to === undefined && kind !== 'type' && specifier !== UNREADABLE)
    .filter((one) => !one.specifier.startsWith('node:') && !declared.includes(packageOf(one)))
    .map((one) => `${place(one)} imports ${one.specifier}: neither a dependency nor a peer in package.json`);
}

/** `@scope/name` or `name`, without the path inside it. Empty for our own files. */
export function packageOf({ to, specifier }: Import): string {
  if (to !== undefined) return '';
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}

function place({ from, line }: Import): string {
  return `${from}:${line}`;
}
