/** By which `inspect` of node:util lets a value show itself. That module takes longer to import than all of ours. */
export const INSPECT: unique symbol = Symbol.for('nodejs.util.inspect.custom');
