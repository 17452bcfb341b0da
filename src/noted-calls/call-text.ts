import { isError } from '../shared/globals.js';
import { excerpt, shortenUrls } from '../shared/redact.js';
import { ASSERTION, METHODS, type Shown } from './methods.js';
import { isMainFrame, type Role } from './library-objects.js';

/** Characters of a text. */
const MAX_TEXT = 300;

/** An argument longer than this is cut before it is looked at. */
const MAX_ARGUMENT = 2000;

/** A call, as it is shown. */
export interface DescribedCall {
  readonly text: string;
  /** The arguments that the text does not show, which no error may show either. */
  readonly hidden: readonly unknown[];
}

/** The object of a call. */
export interface Receiver {
  readonly object: object;
  readonly role: Role;
  /** The text of one of Puppeteer's locators, which has none of its own. */
  readonly locator: string | undefined;
}

/** Describes a call without what was typed: of the arguments, only those appear that `METHODS` names. */
export function describeCall(receiver: Receiver, name: string, args: readonly unknown[]): DescribedCall {
  if (name === ASSERTION) return { text: excerpt(assertion(receiver, args), MAX_TEXT), hidden: args };
  const how = METHODS[receiver.role][name] ?? 'nothing';
  const shown = SHOWN[how](args);
  const hidden = args.slice(shown.length);
  const hasNone = args.every((one) => one === undefined);
  const list = shown.length > 0 || hasNone ? shown.join(', ') : '…';
  return { text: excerpt(`${nameOf(receiver)}.${name}(${list})`, MAX_TEXT), hidden };
}

/** Describes a locator that one of Puppeteer's objects returns. */
export function describeLocator({ role, locator }: Receiver, name: string, args: readonly unknown[]): string {
  if (name === 'locator' && role !== 'locator') return `locator(${selector(args)[0] ?? '…'})`;
  const base = locator ?? role;
  return name.startsWith('set') || name === 'clone' ? base : `${base}.${name}(…)`;
}

function nameOf({ object, role, locator }: Receiver): string {
  if (role === 'frame' && isMainFrame(object)) return 'page';
  // Playwright's own text of a locator: `getByRole('button', { name: 'Save' })`.
  return role === 'locator' ? (locator ?? String(object)) : role;
}

/** The arguments that are shown, the first ones of the call. */
const SHOWN: Readonly<Record<Shown, (args: readonly unknown[]) => readonly string[]>> = {
  nothing: () => [],
  selector,
  selectors: ([one, other]) => [...selector([one]), ...selector([other])],
  url: ([url]) => (typeof url === 'string' ? [JSON.stringify(withoutValues(url))] : pattern(url)),
  word: ([word]) => (typeof word === 'string' ? selector([word]) : number(word)),
  numbers: (args) => args.slice(0, 2).flatMap(number),
  key: ([key]) => keyName(key),
  selectorAndKey: ([first, key]) => [...selector([first]), ...keyName(key)],
  files: ([files]) => fileNames(files),
  allFiles: (args) => fileNames(args),
  selectorAndFiles: ([first, files]) => [...selector([first]), ...fileNames(files)],
};

function selector([value]: readonly unknown[]): readonly string[] {
  return typeof value === 'string' ? [JSON.stringify(value.slice(0, MAX_ARGUMENT))] : [];
}

function pattern(value: unknown): readonly string[] {
  return value instanceof RegExp ? [String(value)] : [];
}

function number(value: unknown): readonly string[] {
  return typeof value === 'number' || typeof value === 'boolean' ? [String(value)] : [];
}

/** A `data:` URL holds a whole document. */
function withoutValues(url: string): string {
  const data = /^data:[^,]*,/i.exec(url.slice(0, MAX_ARGUMENT));
  return data ? `${data[0]}…` : shortenUrls(url, MAX_TEXT);
}

/** Names of keys, and shortcuts with Control or Meta, which type nothing. Any other key is a typed character. */
const KEY = /^(?:(?:Shift|Alt|Control|Meta|ControlOrMeta)\+)*(?!Key|Digit|Numpad)[A-Z][A-Za-z\d]+$/;
const SHORTCUT = /^(?:(?:Shift|Alt)\+)*(?:Control|Meta|ControlOrMeta)\+(?:(?:Shift|Alt)\+)*\S{1,20}$/;

function keyName(key: unknown): readonly string[] {
  return typeof key === 'string' && (KEY.test(key) || SHORTCUT.test(key)) ? [JSON.stringify(key)] : [];
}

/** Files of an upload whose names are shown. */
const MOST_FILES = 5;

/** The names of files, without their folders and contents. */
function fileNames(files: unknown): readonly string[] {
  const list: readonly unknown[] = Array.isArray(files) ? files : [files];
  const names = list.slice(0, MOST_FILES).map((file) => {
    const path: unknown = typeof file === 'object' && file !== null ? Reflect.get(file, 'name') : file;
    return typeof path === 'string' ? JSON.stringify(path.split(/[/\\]/).at(-1)) : '…';
  });
  const all = list.length > MOST_FILES ? [...names, '…'] : names;
  return [Array.isArray(files) ? `[${all.join(', ')}]` : all.join()];
}

/** The options of Playwright's assertions, as far as they are read. */
interface AssertionOptions {
  readonly isNot?: unknown;
}

/** What Playwright's assertion resolves with. */
interface AssertionResult {
  readonly matches?: unknown;
  readonly errorMessage?: unknown;
}

/** Matchers whose names do not follow from the name of the assertion in the library. */
const MATCHERS: Readonly<Record<string, string>> = {
  'to.have.attribute.value': 'toHaveAttribute',
  'to.have.css': 'toHaveCSS',
  'to.have.property': 'toHaveJSProperty',
  'to.have.url': 'toHaveURL',
  'to.match.aria': 'toMatchAriaSnapshot',
};

/** As `expect(locator('#a')).not.toBeVisible()`. */
function assertion(receiver: Receiver, [expression, options]: readonly unknown[]): string {
  const { isNot } = (options ?? {}) as AssertionOptions;
  const name = String(expression).replace(/\.array$/, '');
  const matcher = MATCHERS[name] ?? name.replaceAll(/\.(\w)/g, (_, letter: string) => letter.toUpperCase());
  // The title and the URL of a page are those of its main frame or of its root element.
  const subject = /^to\.have\.(title|url)$/.test(name) ? 'page' : nameOf(receiver);
  return `expect(${subject})${isNot === true ? '.not' : ''}.${matcher}()`;
}

/** Why an assertion failed: its call succeeds in either case. Undefined for one that did not fail. */
export function failureOfAssertion(
  result: unknown,
  { hidden }: Pick<DescribedCall, 'hidden'>,
): string | undefined {
  if (typeof result !== 'object' || result === null) return undefined;
  const { matches, errorMessage } = result as AssertionResult;
  const { isNot } = (hidden[1] ?? {}) as AssertionOptions;
  if (typeof matches !== 'boolean' || matches !== (isNot === true)) return undefined;
  return describeFailure(typeof errorMessage === 'string' ? errorMessage : 'The assertion failed.', hidden);
}

/** Characters of an error that are read. */
const MAX_ERROR = 20_000;

/**
 * The first line of an error: the others can be a log of the library, with typed values. A hidden argument is removed from the first
 * line, too: `Unknown key: "…"`.
 */
export function describeFailure(error: unknown, hidden: readonly unknown[]): string {
  const whole = (isError(error) ? error.message || error.name : String(error)).slice(0, MAX_ERROR);
  // Before the line is cut: a hidden value may have several lines.
  const shown = stringsIn(hidden).reduce(without, whole);
  return excerpt(shortenUrls(shown.trim().split(/[\r\n]/, 1)[0]!, MAX_TEXT), MAX_TEXT);
}

/** A shorter value is also a part of usual words, and is removed only in quotes. */
const SHORTEST = 4;

function without(text: string, value: string): string {
  if (value.length >= SHORTEST) return text.replaceAll(value, '…');
  return ['"', "'", '`'].reduce(
    (rest, quote) => rest.replaceAll(quote + value + quote, `${quote}…${quote}`),
    text,
  );
}

const MOST_STRINGS = 100;
const DEEPEST = 4;

/** The texts in values, also as JSON shows them, the longest first: a short one may be a part of a long one. */
function stringsIn(values: readonly unknown[]): readonly string[] {
  const found = new Set<string>();
  const add = (value: unknown, depth: number): void => {
    if (found.size >= MOST_STRINGS || depth > DEEPEST) return;
    if (typeof value === 'string' && value.trim() !== '') {
      found.add(value).add(JSON.stringify(value).slice(1, -1));
    } else if (typeof value === 'object' && value !== null && !ArrayBuffer.isView(value)) {
      for (const inner of Object.values(value).slice(0, MOST_STRINGS)) add(inner, depth + 1);
    }
  };
  for (const value of values) add(value, 0);
  return [...found].sort((a, b) => b.length - a.length);
}
