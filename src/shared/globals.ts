/**
 * What this library takes from its environment, once. A test environment (jsdom, happy-dom, a `vm` context of Jest) replaces globals
 * or leaves them out, and fake timers replace the timers: modules of Node stay what they are.
 */

const events = process.getBuiltinModule('node:events');

const nodeTimers = process.getBuiltinModule('node:timers');

/** Node's timers. Some environments have no `setImmediate`. */
export const timers = {
  setTimeout: unfaked(nodeTimers, 'setTimeout'),
  clearTimeout: unfaked(nodeTimers, 'clearTimeout'),
  setImmediate: unfaked(nodeTimers, 'setImmediate'),
  clearImmediate: unfaked(nodeTimers, 'clearImmediate'),
  setInterval: unfaked(nodeTimers, 'setInterval'),
  clearInterval: unfaked(nodeTimers, 'clearInterval'),
};

export const hrtime = unfaked(process, 'hrtime');

/**
 * The fake timers of Vitest, Jest and sinon replace Node's module, too, and a test can have set them before it imports this library.
 * Their clock has what they replaced.
 */
function unfaked<Owner extends object, Name extends keyof Owner & string>(
  owner: Owner,
  name: Name,
): Owner[Name] {
  const { clock } = owner[name] as { clock?: Readonly<Record<string, unknown>> };
  return (clock?.[`_${name}`] ?? owner[name]) as Owner[Name];
}

/** Whether the timers that libraries find now are those of Vitest, Jest or sinon, which only a test advances. */
export function hasFakeClock(): boolean {
  return isFake(globalThis.setTimeout) || isFake(globalThis.setImmediate);
}

/** Whether `queueMicrotask` calls nothing until a test advances its clock: Jest and sinon replace it with the timers. */
export function hasFakeMicrotasks(): boolean {
  return isFake(globalThis.queueMicrotask);
}

function isFake(timer: object | undefined): boolean {
  return timer !== undefined && 'clock' in timer;
}

/** What undici, Playwright and Puppeteer need when they are evaluated, and Jest's jsdom does not have. */
const NEEDED = ['TextDecoder', 'ReadableStream', 'MessagePort', 'Request'];

/** Whether packages for Node can be evaluated with the globals of this environment. Asked each time: a test can add what is missing. */
export function hasNodeGlobals(): boolean {
  return NEEDED.every((name) => name in globalThis);
}

let ownController: typeof AbortController | undefined;

/**
 * Creates an AbortController of Node. Node's functions, such as `setMaxListeners` and `fetch`, refuse the signals of other classes.
 */
export function createAbort(): AbortController {
  ownController ??= findController();
  return new ownController();
}

/** No module of Node exports the class itself. */
function findController(): typeof AbortController {
  try {
    events.setMaxListeners(0, new globalThis.AbortController().signal);
    return globalThis.AbortController;
  } catch {
    const { transferableAbortController } = process.getBuiltinModule('node:util');
    return transferableAbortController().constructor as typeof AbortController;
  }
}

type Kind = 'Error' | 'DOMException' | 'Map' | 'Promise' | 'Set' | 'URL';

/** Returns true for an object of one of these classes, also of another realm, for which `instanceof` is false. */
export function isOf(value: unknown, ...kinds: readonly Kind[]): boolean {
  const shown = Object.prototype.toString.call(value).slice('[object '.length, -1);
  return kinds.includes(shown as Kind);
}

/** Returns true for an error, also of another realm: those of Node's modules are, in a test environment. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || isOf(value, 'Error', 'DOMException');
}

/** Returns true for bytes, also of another realm. */
export function isBytes(value: unknown): value is Uint8Array {
  return ArrayBuffer.isView(value) && 'subarray' in value && 'byteOffset' in value;
}
