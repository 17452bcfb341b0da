import MagicString from 'magic-string';
import { parseSync } from 'oxc-parser';

/** An `await` of the library's source. */
export interface Failpoint {
  id: number;
  /** File and line, and what is awaited. */
  where: string;
}

interface Node {
  type: string;
  start: number;
  end: number;
  [key: string]: unknown;
}

/**
 * Puts a failpoint into every `await` of a source text: `await x` becomes `await failpoint(7, () => x)`. In an awaited
 * race, the work in the race fails instead of the race. A `for await` fails at its first item.
 */
export function placeFailpoints(
  path: string,
  source: string,
  firstId: number,
): { code: string; failpoints: Failpoint[] } {
  const { program, errors } = parseSync(path, source);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]!.message}`);
  const code = new MagicString(source);
  const failpoints: Failpoint[] = [];
  walk(program as unknown as Node, (node) => {
    const awaited = awaitedBy(node);
    if (!awaited) return;
    const id = firstId + failpoints.length;
    const work = node.type === 'AwaitExpression' ? workOf(awaited) : awaited;
    const line = source.slice(0, node.start).split('\n').length;
    const text = source.slice(awaited.start, awaited.end).replaceAll(/\s+/g, ' ');
    failpoints.push({ id, where: `${path}:${line} ${text.slice(0, 80)}` });
    const name = node.type === 'ForOfStatement' ? 'failpointInLoop' : 'failpoint';
    if (work.type === 'ArrowFunctionExpression')
      code.appendLeft(work.start, `(...all) => ${name}(${id}, () => (`);
    else code.appendLeft(work.start, `${name}(${id}, ${hasAwait(work) ? 'async ' : ''}() => (`);
    code.prependRight(work.end, work.type === 'ArrowFunctionExpression' ? ')(...all))' : '))');
  });
  return { code: code.toString(), failpoints };
}

function awaitedBy(node: Node): Node | undefined {
  if (node.type === 'AwaitExpression') return node['argument'] as Node;
  if (node.type === 'ForOfStatement' && node['await'] === true) return node['right'] as Node;
  return undefined;
}

/** `raceAbort(work, …)`, `raceTimeout(ms, work, …)`, `Promise.race([work, …])`, `work.catch(…)`, one inside the other. */
function workOf(node: Node): Node {
  if (node.type !== 'CallExpression') return node;
  const callee = node['callee'] as Node;
  const [first, second] = node['arguments'] as Node[];
  if (callee['name'] === 'raceAbort') return workOf(first!);
  if (callee['name'] === 'raceTimeout') return second!;
  const method = callee.type === 'MemberExpression' && (callee['property'] as Node)['name'];
  if (method === 'catch') return workOf(callee['object'] as Node);
  const isRace = method === 'race';
  return isRace ? workOf((first!['elements'] as Node[])[0]!) : node;
}

function hasAwait(node: Node): boolean {
  let found = false;
  walk(node, ({ type }) => {
    if (type === 'AwaitExpression') found = true;
  });
  return found;
}

function walk(node: Node, visit: (node: Node) => void): void {
  visit(node);
  for (const value of Object.values(node)) {
    const children = (Array.isArray(value) ? value : [value]) as unknown[];
    for (const child of children) if (isNode(child)) walk(child, visit);
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';
}
