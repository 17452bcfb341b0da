import { types } from 'node:util';

/** These say that a handle has ended, or end it once more: a caller that closes its page late does nothing wrong. */
const UNCHANGED = new Set(['constructor', 'close', 'disconnect', 'isClosed']);

/**
 * Makes the methods of a library's objects fail with the error of the lease instead of one about a page or a frame. What does not
 * fail stays as it is, and so does what a method returns.
 *
 * The methods of each object are replaced, once: a proxy would be no instance of the library's class, which `expect` of Playwright
 * tests, and the classes belong to other browsers, too.
 *
 * @param toError Returns the error of the lease for an error of the library.
 */
export function endHandles(handles: Iterable<object>, toError: (cause: unknown) => Error): void {
  for (const handle of handles) {
    for (const [name, method] of methodsOf(handle)) {
      const value = (...args: unknown[]) => callAfterEnd(() => method.apply(handle, args), toError);
      Object.defineProperty(handle, name, { value, configurable: true, writable: true });
    }
  }
}

type Method = (...args: unknown[]) => unknown;

/** Own methods, and those of the classes. */
function methodsOf(handle: object): Map<string, Method> {
  const methods = new Map<string, Method>();
  for (let one = handle; one && one !== Object.prototype; one = Object.getPrototypeOf(one) as object) {
    for (const name of Object.getOwnPropertyNames(one)) {
      // Most names are those of internal fields: only the others are looked at.
      if (name.startsWith('_') || UNCHANGED.has(name) || methods.has(name)) continue;
      const value: unknown = Object.getOwnPropertyDescriptor(one, name)?.value;
      if (typeof value === 'function') methods.set(name, value as Method);
    }
  }
  return methods;
}

function callAfterEnd(call: () => unknown, toError: (cause: unknown) => Error): unknown {
  try {
    const returned = call();
    // The object can be of another realm: in Jest's jsdom, the library is loaded outside of it.
    return types.isPromise(returned) ? settle(returned, toError) : returned;
  } catch (error) {
    throw toError(error);
  }
}

/** An `async` function, so that the stack of the error contains the lines that await it. */
async function settle(work: Promise<unknown>, toError: (cause: unknown) => Error): Promise<unknown> {
  try {
    return await work;
  } catch (error) {
    throw toError(error);
  }
}
