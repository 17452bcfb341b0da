import { isOf } from '../shared/globals.js';

/** What an object of a library is. The name in the text of a call. */
export type Role =
  | 'browser'
  | 'context'
  | 'page'
  | 'frame'
  | 'locator'
  | 'elementHandle'
  | 'jsHandle'
  | 'keyboard'
  | 'mouse'
  | 'touchscreen'
  | 'dialog'
  | 'download'
  | 'fileChooser'
  | 'request'
  | 'clock'
  | 'cdpSession';

/** Where the object of a call belongs. */
export interface Place {
  readonly browser: object;
  readonly context?: object;
  readonly page?: object;
}

/**
 * Public methods by which an object is recognized, the first line that fits: the names of the classes differ between the libraries
 * and their protocols, and a bundler may change them.
 */
const SIGNS: readonly (readonly [Role, ...(readonly string[])])[] = [
  ['page', 'mainFrame', 'bringToFront'],
  ['frame', 'childFrames', 'parentFrame'],
  ['browser', 'version', 'newPage'],
  ['context', 'newPage', 'pages'],
  ['elementHandle', 'asElement', '$$eval'],
  ['jsHandle', 'asElement', 'jsonValue'],
  // Playwright's and Puppeteer's.
  ['locator', 'pressSequentially', 'waitFor'],
  ['locator', 'waitHandle', 'fill'],
  ['keyboard', 'press', 'down', 'up'],
  ['mouse', 'move', 'wheel'],
  ['touchscreen', 'tap'],
  ['dialog', 'dismiss', 'accept'],
  ['fileChooser', 'isMultiple'],
  ['download', 'suggestedFilename', 'saveAs'],
  ['request', 'fetch', 'dispose'],
  ['clock', 'install', 'runFor'],
  ['cdpSession', 'send', 'detach'],
];

/** Recognized classes by their prototype; undefined for others. */
const roles = new WeakMap<object, Role | undefined>();

/** Returns undefined for a value that is no object of a library, as what a page returned. */
export function roleOf(value: unknown): Role | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const prototype = Object.getPrototypeOf(value) as object | null;
  // A page chooses the properties of what it returns, but no methods of a prototype.
  if (!prototype || prototype === Object.prototype || prototype === Array.prototype) return undefined;
  if (roles.has(prototype)) return roles.get(prototype);
  const has = (name: string) => name in prototype && typeof methodOf(prototype, name) === 'function';
  const role = SIGNS.find(([, ...names]) => names.every(has))?.[0];
  roles.set(prototype, role);
  return role;
}

/** Not `prototype[name]`, which would call a getter on the prototype. */
function methodOf(prototype: object, name: string): unknown {
  for (let one = prototype; one; one = Object.getPrototypeOf(one) as object)
    if (Object.hasOwn(one, name)) return Object.getOwnPropertyDescriptor(one, name)?.value;
  return undefined;
}

/** What both libraries have, or one of them. */
interface AnyObject {
  readonly frame?: AnyObject | ((name: string) => unknown);
  readonly keyboard?: object;
  readonly mouse?: object;
  readonly touchscreen?: object;
  readonly request?: object;
  readonly clock?: object;
  page?(): object | null;
  context?(): object;
  browserContext?(): object;
  browser?(): object | null;
  mainFrame?(): object;
  locator?(selector: string): object;
  parentFrame?(): object | null;
}

/** Where an object belongs by its own public methods. Undefined for one that has none, such as a keyboard. */
export function placeOf(object: object, role: Role): Place | undefined {
  const one = object as AnyObject;
  if (role === 'browser') return { browser: object };
  if (role === 'context') {
    const browser = one.browser?.();
    return browser ? { browser, context: object } : undefined;
  }
  if (role === 'page') {
    const context = contextOf(one);
    const place = context && placeOf(context, 'context');
    return place && { ...place, page: object };
  }
  // Puppeteer's handles of elements have the frame as a property.
  const owner = role === 'elementHandle' && typeof one.frame === 'object' ? one.frame : one;
  const page = owner.page?.();
  return page ? placeOf(page, 'page') : undefined;
}

function contextOf(page: AnyObject): object | undefined {
  return page.context?.() ?? page.browserContext?.();
}

/** Whether a frame is the main frame: a call of the page is a call of this frame. */
export function isMainFrame(object: object): boolean {
  return (object as AnyObject).parentFrame?.() === null;
}

/** The objects that a page or a context has from its beginning. To read them does nothing in the browser. */
export function partsOf(object: object, role: Role): readonly unknown[] {
  const owner = object as AnyObject;
  if (role === 'context') return [owner.request, owner.clock];
  if (role !== 'page') return [];
  // Any locator shows the class of all of Playwright's locators.
  const others = [contextOf(owner), owner.mainFrame?.(), owner.locator?.('html')];
  return [owner.keyboard, owner.mouse, owner.touchscreen, ...others];
}

/** Objects in what a call returned, of which a long list is not read to its end. */
const MOST_RESULTS = 1000;

/** The objects of a library in what a call resolved with. */
export function objectsIn(value: unknown): readonly object[] {
  if (roleOf(value)) return [value as object];
  if (Array.isArray(value)) return value.slice(0, MOST_RESULTS).filter((one) => roleOf(one)) as object[];
  if (!isOf(value, 'Map')) return [];
  return [...(value as Map<unknown, unknown>).values()].slice(0, MOST_RESULTS).filter(roleOf) as object[];
}
