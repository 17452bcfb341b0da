import { posix } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';

/** One import, re-export or `import()` of a source file. */
export interface Import {
  /** The importing file, from the repository's root, such as `src/run/lease.ts`. */
  from: string;
  line: number;
  /** As written. */
  specifier: string;
  /** The imported file, for a relative specifier; `undefined` for a package. */
  to: string | undefined;
  /** `value`: loads with its importer; `lazy`: `import()`, loads when it is reached; `type`: never loads. */
  kind: 'value' | 'lazy' | 'type';
}

/** Sources by path. */
export type Sources = ReadonlyMap<string, string>;

export function readImports(sources: Sources): Import[] {
  return [...sources].flatMap(([path, source]) => readFile(path, source));
}

function readFile(from: string, source: string): Import[] {
  const imports: Import[] = [];
  const add = (kind: Import['kind'], node: { start: number; source: unknown }) => {
    const specifier = literal(node.source);
    imports.push({ from, line: lineAt(source, node.start), specifier, to: resolve(from, specifier), kind });
  };
  // `import { type A }` stands under `value`: with verbatimModuleSyntax it is emitted as `import {}`, and loads the file.
  new Visitor({
    ImportDeclaration: (node) => add(node.importKind === 'type' ? 'type' : 'value', node),
    ExportAllDeclaration: (node) => add(node.exportKind === 'type' ? 'type' : 'value', node),
    ExportNamedDeclaration: (node) => node.source && add(node.exportKind === 'type' ? 'type' : 'value', node),
    ImportExpression: (node) => add('lazy', node),
    TSImportType: (node) => add('type', node),
  }).visit(parse(from, source));
  return imports.sort((one, other) => one.line - other.line);
}

/** The file's syntax tree; a file that can't be parsed must not pass for one without imports. */
export function parse(path: string, source: string) {
  const { program, errors } = parseSync(path, source);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]!.message}`);
  return program;
}

export function lineAt(source: string, offset: number): number {
  return source.slice(0, offset).split('\n').length;
}

/** What an `import()` of an expression is recorded as: where it leads can't be read. */
export const UNREADABLE = '(expression)';

function literal(node: unknown): string {
  const { value } = node as { value?: unknown };
  return typeof value === 'string' ? value : UNREADABLE;
}

function resolve(from: string, specifier: string): string | undefined {
  if (!specifier.startsWith('.')) return undefined;
  return posix.join(posix.dirname(from), specifier).replace(/\.js$/, '.ts');
}
