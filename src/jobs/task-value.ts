import { asError, InvalidOptionError } from '../shared/errors.js';
import { TaskResultError } from '../shared/lease-errors.js';
import type { TaskCallback } from './outcome.js';
import { isError, isOf } from '../shared/globals.js';

/** A task whose result can be stored as JSON: any other value makes the task fail with `TaskResultError`. */
export function returningData<Handles, Input, Value, Session extends object>(
  fn: TaskCallback<Handles, Input, Value, Session>,
): TaskCallback<Handles, Input, Value, Session> {
  return async (task) => {
    const value = await fn(task);
    const fault = findFault(value);
    if (!fault) return value;
    const place = fault.path === '' ? '' : ` as value${fault.path}`;
    throw new TaskResultError(`The task returned ${fault.what}${place}. ${fault.advice}`);
  };
}

/**
 * Checks an input that is stored as JSON: who reads the input there must get the same.
 *
 * @throws InvalidOptionError
 */
export function expectData(input: unknown, index: number): void {
  let fault: string | undefined;
  let cause: unknown;
  try {
    const found = findFault(input);
    fault = found && `input${found.path} is ${found.what}`;
  } catch (error) {
    // Of a getter, or of too many objects within each other.
    cause = error;
    fault = asError(error).message;
  }
  if (fault === undefined) return;
  const message = `Input ${index} is not data that JSON can hold: ${fault}.`;
  const advice = 'Pass strings, numbers, plain objects and arrays.';
  throw new InvalidOptionError('inputs', `${message} ${advice}`, { cause });
}

/** The part of a value that JSON would store as something else. */
interface Fault {
  readonly what: string;
  /** Where the part is in the value, such as `.links[0]`. */
  readonly path: string;
  readonly advice: string;
}

const ADVICE = 'Return data that JSON can hold, such as { title: await page.title() }, or nothing.';
const BINARY = 'Return a string, such as Buffer.from(bytes).toString("base64"), or the path of a file.';

/**
 * Finds the first part that JSON can't hold. Objects of the caller's own classes are data, if they have fields and no
 * field is marked as internal: Puppeteer's `page.keyboard` has only `_modifiers`.
 *
 * @param outer The objects around the value.
 */
function findFault(value: unknown, outer: readonly object[] = []): Fault | undefined {
  if (typeof value === 'number' && !Number.isFinite(value)) return faultOf(String(value), 'Return null.');
  if (typeof value === 'bigint') return faultOf('a bigint', 'Return String(value).');
  if (typeof value === 'function' || typeof value === 'symbol') return faultOf(`a ${typeof value}`);
  if (typeof value !== 'object' || value === null) return undefined;
  if (outer.includes(value)) return faultOf('an object that contains itself');
  if (isOf(value, 'Promise')) return faultOf('a promise', 'Add await.');
  if (isError(value)) return faultOf(classOf(value), 'Throw the error, or return its message.');
  // Before `toJSON`: that of a Buffer makes an array of millions of numbers.
  if (ArrayBuffer.isView(value)) return faultOf(classOf(value), BINARY);
  if (isHandle(value)) return faultOf(classOf(value));
  const around = [...outer, value];
  const toJson: unknown = Reflect.get(value, 'toJSON');
  if (typeof toJson === 'function') {
    const json: unknown = Reflect.apply(toJson, value, ['']);
    // As an invalid Date does.
    if (json === null) return faultOf(`an invalid ${nameOf(value)}`, 'Return null.');
    return findFault(json, around);
  }
  if (Array.isArray(value)) return findFaultInArray(value, around);
  const entries = Object.entries(value);
  const isInstance = !isPlain(value);
  const hasInternals = entries.length === 0 || entries.some(([key]) => key.startsWith('_'));
  if (isInstance && hasInternals) return faultOf(classOf(value));
  // Who reads the file leaves it out: it would replace a prototype when it is copied.
  if (Object.hasOwn(value, '__proto__')) return faultOf("an object with a key '__proto__'");
  for (const [key, inner] of entries) {
    const fault = findFault(inner, around);
    if (!fault) continue;
    // The fields of a class instance, such as a locator, are internal.
    if (isInstance && typeof inner !== 'number') return faultOf(classOf(value));
    return { ...fault, path: `.${key}${fault.path}` };
  }
  return undefined;
}

/** By index: the entries of an array leave out its holes, and need the memory of a string for each item. */
function findFaultInArray(items: readonly unknown[], around: readonly object[]): Fault | undefined {
  for (let at = 0; at < items.length; at++) {
    const item = items[at];
    const fault = item === undefined ? faultOf('undefined', 'Return null.') : findFault(item, around);
    if (fault) return { ...fault, path: `[${at}]${fault.path}` };
  }
  return undefined;
}

function faultOf(what: string, advice = ADVICE): Fault {
  return { what, path: '', advice };
}

/** Whether an object represents something outside this process: it emits events, or must be disposed of. */
function isHandle(value: object): boolean {
  const emits = typeof Reflect.get(value, 'on') === 'function' && !isPlain(value);
  return emits || Symbol.dispose in value || Symbol.asyncDispose in value;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function classOf(value: object): string {
  return `an object of class ${nameOf(value)}`;
}

function nameOf(value: object): string {
  // Bundlers write `_Page` for Page.
  return value.constructor?.name.replace(/^_+/, '') || '(anonymous)';
}
