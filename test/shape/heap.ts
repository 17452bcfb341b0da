import { once } from 'node:events';
import { getHeapSnapshot } from 'node:v8';

/** A Map or a Set that an object or a closure of src holds. */
export interface Table {
  /** The file of the class or closure, below src/. */
  readonly file: string;
  /** The class and the property, or the variable of a closure. */
  readonly place: string;
}

export interface Wanted {
  readonly keys: ReadonlySet<string>;
  readonly capacity: number;
}

export interface Found {
  /** Those with one of the keys. */
  readonly withKeys: readonly Table[];
  /** Those with capacity for so many entries. */
  readonly withCapacity: readonly Table[];
}

interface Snapshot {
  readonly snapshot: { readonly meta: { readonly node_fields: string[]; readonly node_types: [string[]] } };
  readonly nodes: number[];
  readonly edges: number[];
  readonly strings: string[];
}

/** An edge is its place in the list. */
const EDGE_TYPES = ['context', 'element', 'property', 'internal', 'hidden', 'shortcut', 'weak'];
const WEAK = EDGE_TYPES.indexOf('weak');
/** Fields of an OrderedHashMap before its buckets, and the bytes of an array's own. */
const FIELDS = 3;
const HEADER = 16;
/** Most steps from a table to the object that it belongs to. */
const FARTHEST = 8;

/** All objects of a process. A node, and an edge, is its place in the list. */
class Heap {
  readonly #all: Snapshot;
  readonly #width: number;
  /** The first edge of each node, and behind the last node the number of edges. */
  readonly #first: Uint32Array;
  /** By the node to which they lead: the edges, the nodes from which they come, and where those of each node begin. */
  readonly #inward: Uint32Array;
  readonly #from: Uint32Array;
  readonly #firstInward: Uint32Array;

  constructor(all: Snapshot) {
    this.#all = all;
    const width = (this.#width = all.snapshot.meta.node_fields.length);
    const { nodes, edges } = all;
    const [count, most] = [nodes.length / width, edges.length / 3];
    const first = (this.#first = new Uint32Array(count + 1));
    for (let node = 0; node < count; node++) first[node + 1] = first[node]! + nodes[node * width + 4]!;
    const begin = (this.#firstInward = new Uint32Array(count + 1));
    for (let edge = 0; edge < most; edge++) begin[edges[3 * edge + 2]! / width + 1]!++;
    for (let node = 0; node < count; node++) begin[node + 1]! += begin[node]!;
    const next = begin.slice();
    [this.#inward, this.#from] = [new Uint32Array(most), new Uint32Array(most)];
    for (let node = 0; node < count; node++)
      for (let edge = first[node]!; edge < first[node + 1]!; edge++) {
        const at = next[edges[3 * edge + 2]! / width]!++;
        this.#inward[at] = edge;
        this.#from[at] = node;
      }
  }

  edges(node: number): number[] {
    const length = this.#first[node + 1]! - this.#first[node]!;
    return Array.from({ length }, (_, at) => this.#first[node]! + at);
  }

  typeOfEdge(edge: number): string {
    return EDGE_TYPES[this.#all.edges[3 * edge]!]!;
  }

  /** The name of a property, a variable or a part; an index as a number. */
  nameOfEdge(edge: number): string | number {
    const name = this.#all.edges[3 * edge + 1]!;
    return ['element', 'hidden'].includes(this.typeOfEdge(edge)) ? name : this.#all.strings[name]!;
  }

  end(edge: number): number {
    return this.#all.edges[3 * edge + 2]! / this.#width;
  }

  *holders(node: number): Iterable<{ edge: number; node: number }> {
    for (let at = this.#firstInward[node]!; at < this.#firstInward[node + 1]!; at++) {
      const edge = this.#inward[at]!;
      if (this.#all.edges[3 * edge] !== WEAK) yield { edge, node: this.#from[at]! };
    }
  }

  to(node: number | undefined, name: string): number | undefined {
    const edge =
      node === undefined ? undefined : this.edges(node).find((one) => this.nameOfEdge(one) === name);
    return edge === undefined ? undefined : this.end(edge);
  }

  nameOf(node: number): string {
    return this.#all.strings[this.#all.nodes[node * this.#width + 1]!]!;
  }

  typeOf(node: number): string {
    return this.#all.snapshot.meta.node_types[0][this.#all.nodes[node * this.#width]!]!;
  }

  tables({ keys, capacity }: Wanted): Found {
    const found = { withKeys: [] as Table[], withCapacity: [] as Table[] };
    for (let node = 0; node < this.#first.length - 1; node++) {
      const name = this.nameOf(node);
      if ((name !== 'Map' && name !== 'Set') || this.typeOf(node) !== 'object') continue;
      const table = this.to(node, 'table');
      if (table === undefined) continue;
      const [hasCapacity, hasKey] = this.#looksAt(table, name === 'Map' ? 3 : 2, { keys, capacity });
      const owner = hasCapacity || hasKey ? this.#ownerOf(node) : undefined;
      if (owner && hasCapacity) found.withCapacity.push(owner);
      if (owner && hasKey) found.withKeys.push(owner);
    }
    return found;
  }

  /** @param step Of the entries in the table: a key, a value of a Map, and the next one of the bucket. */
  #looksAt(table: number, step: number, { keys, capacity }: Wanted): [hasCapacity: boolean, hasKey: boolean] {
    const length = (this.#all.nodes[table * this.#width + 3]! - HEADER) / 8 - FIELDS;
    const buckets = Math.floor(length / (1 + 2 * step));
    const isKnown = (edge: number) => {
      const at = Number(this.nameOfEdge(edge)) - FIELDS - buckets;
      return at >= 0 && at % step === 0 && keys.has(this.nameOf(this.end(edge)));
    };
    return [2 * buckets >= capacity, this.edges(table).some(isKnown)];
  }

  /** The nearest object of a class, or variable of a closure, that holds a table. Undefined if it is not of src. */
  #ownerOf(table: number): Table | undefined {
    let nodes = [{ node: table, path: '' }];
    const seen = new Set<number>();
    for (let far = 0; far < FARTHEST && nodes.length > 0; far++) {
      const next: typeof nodes = [];
      for (const { node: held, path } of nodes)
        for (const { edge, node } of this.holders(held)) {
          if (seen.has(node)) continue;
          seen.add(node);
          const script = this.#scriptOf(node);
          const file = /\/src\/(.*)\.ts/.exec(script ?? '')?.[1];
          const isNamed = ['property', 'context'].includes(this.typeOfEdge(edge));
          const here = isNamed ? `.${this.nameOfEdge(edge)}${path}` : path;
          if (file !== undefined)
            return { file, place: `${this.nameOf(node).replace('system / Context', 'closure')}${here}` };
          if (script === undefined && ['object', 'array'].includes(this.typeOf(node)))
            next.push({ node, path: here });
        }
      nodes = next;
    }
    return undefined;
  }

  /** The script of an object's class, or of the closures that use a scope. */
  #scriptOf(node: number): string | undefined {
    const isClosure = ({ edge, node: by }: { edge: number; node: number }) =>
      this.typeOf(by) === 'closure' && this.nameOfEdge(edge) === 'context';
    const code =
      this.nameOf(node) === 'system / Context'
        ? [...this.holders(node)].find(isClosure)?.node
        : this.to(this.to(node, '__proto__'), 'constructor');
    const shared = this.to(code, 'shared');
    const script = this.to(shared, 'script') ?? this.to(shared, 'script_or_debug_info');
    return script === undefined ? undefined : this.nameOf(script);
  }
}

/** The tables of src in this process. */
export async function tablesOfSource(wanted: Wanted): Promise<Found> {
  const parts: string[] = [];
  const stream = getHeapSnapshot()
    .setEncoding('utf8')
    .on('data', (part: string) => parts.push(part));
  await once(stream, 'end');
  return new Heap(JSON.parse(parts.join('')) as Snapshot).tables(wanted);
}
