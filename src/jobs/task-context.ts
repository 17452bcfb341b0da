import { serialize } from 'node:v8';
import { InvalidOptionError } from '../shared/errors.js';
import { isRecord, showValue } from '../shared/json.js';
import type { MapSettings } from './options.js';

/** The context in which a task runs. Tasks may share a context only if their keys are equal. */
export interface TaskContext {
  /** The option `contextOptions` for this task. */
  readonly options: object | undefined;
  readonly key: string | symbol;
}

const PLAIN: TaskContext = { options: undefined, key: '' };

/** Returns the context of each task. What the caller's function throws is thrown. */
export function taskContexts({
  contextOptions: given,
}: Pick<MapSettings, 'contextOptions'>): (input: unknown, index: number) => TaskContext {
  if (typeof given !== 'function') {
    const fixed = given ? withKey(given) : PLAIN;
    return () => fixed;
  }
  return (input, index) => withKey(expectOptions((given as ContextFunction)(input, index) ?? {}));
}

type ContextFunction = (input: unknown, index: number) => object | undefined;

function expectOptions(options: object): object {
  if (isRecord(options)) return options;
  const message = `The function contextOptions must return an object of options, not ${showValue(options)}.`;
  throw new InvalidOptionError('contextOptions', message);
}

function withKey(options: object): TaskContext {
  return { options, key: keyOf(options) };
}

/** A copy of the options as text: the caller may change the object later. */
function keyOf(options: object): string | symbol {
  try {
    return serialize(options).toString('latin1');
  } catch {
    // Options with functions are equal to no others.
    return Symbol('context');
  }
}
