import type { LibraryConnection, Connector, ObserveRequest } from '../../src/index.js';

/** Notes of the calls of a library, in the order of their beginning. */
export interface Notes {
  /** The calls, with ` ✗ ` and the failure of those that failed, and `…` for those that have not ended. */
  readonly calls: readonly string[];
  stop(): void;
}

/** A connector of a library whose last connection can be observed. */
export class Noting<Handles> {
  readonly connector: Connector<Handles>;
  #connection: LibraryConnection<Handles> | undefined;

  constructor(connector: Connector<Handles>) {
    this.connector = {
      ...connector,
      connect: async (request) => (this.#connection = await connector.connect(request)),
    };
  }

  get connection(): LibraryConnection<Handles> {
    return this.#connection!;
  }

  /** Notes the calls until `stop`. */
  note(handles: Partial<Handles>, scope: ObserveRequest['scope'] = 'browser'): Notes {
    const calls: string[] = [];
    const observation = this.connection.observe!({
      handles,
      scope,
      onCall: ({ text }) => {
        const index = calls.push(`${text} …`) - 1;
        return (failure) => (calls[index] = failure === undefined ? text : `${text} ✗ ${failure}`);
      },
    });
    return { calls, stop: () => observation.stop() };
  }
}

type Methods = ReadonlyMap<object, ReadonlyMap<string, unknown>>;

/** The methods of the classes of some objects, and of those from which they inherit, by their prototypes. */
export function methodsOf(objects: readonly object[]): Methods {
  const found = new Map<object, Map<string, unknown>>();
  for (const object of objects)
    for (let one = prototypeOf(object); one !== Object.prototype; one = prototypeOf(one)) {
      const properties = Object.entries(Object.getOwnPropertyDescriptors(one));
      found.set(one, new Map(properties.map(([name, { value }]) => [name, value])));
    }
  return found;
}

function prototypeOf(object: object): object {
  return Object.getPrototypeOf(object) as object;
}

/** The names of the methods that differ, are missing or are new. */
export function changesOf(before: Methods, after: Methods): string[] {
  return [...after].flatMap(([prototype, methods]) => {
    const old = before.get(prototype)!;
    return [...new Set([...methods.keys(), ...old.keys()])].filter(
      (name) => methods.get(name) !== old.get(name) || methods.has(name) !== old.has(name),
    );
  });
}
