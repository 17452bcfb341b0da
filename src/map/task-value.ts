import { TaskResultError } from '../shared/lease-errors.js';
import type { TaskCallback } from './outcome.js';

/** A task whose result can be stored as JSON: any other value makes the task fail with `TaskResultError`. */
export function returningData<Handles, Input, Value>(
  fn: TaskCallback<Handles, Input, Value, object>,
): TaskCallback<Handles, Input, Value, object> {
  return async (task) => {
    const value = await fn(task);
    const fault = findFault(value, []);
    if (!fault) return value;
    const place = fault.path === '' ? '' : ` as value${fault.path}`;
    throw new TaskResultError(`The task returned ${fault.what}${place}. ${fault.advice}`);
  };
}

/** The part of a value that is not data. */
interface Fault {
  readonly what: string;
  /** Where the part is in the value, such as `.links[0]`. */
  readonly path: string;
  readonly advice: string;
}

const ADVICE = 'Return data that JSON can hold, such as { title: await page.title() }, or nothing.';

/**
 * Finds the first part that JSON can't hold. Objects of the caller's own classes are data, if they have fields.
 *
 * @param outer The objects around the value.
 */
function findFault(value: unknown, outer: readonly object[]): Fault | undefined {
  if (typeof value === 'bigint') return { what: 'a bigint', path: '', advice: 'Return String(value).' };
  if (typeof value === 'function' || typeof value === 'symbol') return faultOf(`a ${typeof value}`);
  if (typeof value !== 'object' || value === null) return undefined;
  if (outer.includes(value)) return faultOf('an object that contains itself');
  if (value instanceof Promise) return { what: 'a promise', path: '', advice: 'Add await.' };
  if (isHandle(value)) return faultOf(classOf(value));
  const toJson: unknown = Reflect.get(value, 'toJSON');
  if (typeof toJson === 'function') return findFault(Reflect.apply(toJson, value, ['']), [...outer, value]);
  const entries = Object.entries(value);
  const around = [...outer, value];
  for (const [key, inner] of entries) {
    const fault = findFault(inner, around);
    if (!fault) continue;
    // The fields of a class instance, such as a locator, are internal.
    if (!isPlain(value)) return faultOf(classOf(value));
    return { ...fault, path: (Array.isArray(value) ? `[${key}]` : `.${key}`) + fault.path };
  }
  return entries.length === 0 && !isPlain(value) ? faultOf(classOf(value)) : undefined;
}

function faultOf(what: string): Fault {
  return { what, path: '', advice: ADVICE };
}

/** Whether an object represents something outside this process: it emits events, or must be disposed of. */
function isHandle(value: object): boolean {
  const emits = typeof Reflect.get(value, 'on') === 'function' && !isPlain(value);
  return emits || Symbol.dispose in value || Symbol.asyncDispose in value;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === null || Object.getPrototypeOf(prototype) === null;
}

function classOf(value: object): string {
  // Bundlers write `_Page` for Page.
  return `an object of class ${value.constructor?.name.replace(/^_+/, '') || '(anonymous)'}`;
}
