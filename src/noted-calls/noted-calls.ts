import { AsyncLocalStorage } from 'node:async_hooks';
import { types } from 'node:util';
import { clock } from '../shared/clock.js';
import {
  describeCall,
  describeFailure,
  describeLocator,
  failureOfAssertion,
  type DescribedCall,
  type Receiver,
} from './call-text.js';
import { objectsIn, partsOf, placeOf, roleOf, type Place, type Role } from './library-objects.js';
import { ASSERTION, MAKERS_OF_PUPPETEER, METHODS, UNCHANGED_OF_PUPPETEER } from './methods.js';
import { PatchedMethods, type Followed } from './patched-methods.js';

/** Receives why a call failed; undefined for one that succeeded. */
type OnCallEnd = (failure: string | undefined) => void;

/**
 * Receives each call that does something in the browser or waits for it, when the call begins. A call that the library makes inside
 * another one is not reported. The function that it returns is called when the call ends, unless the observation was stopped before.
 */
export type OnCall = (call: {
  /** The call without typed values and secrets, as `page.fill("#email")`. */
  readonly text: string;
  /** When the call began, by the monotonic clock of this library, in ms. */
  readonly at: number;
}) => OnCallEnd | undefined;

/** Which calls are noted. */
interface NotedScope {
  readonly scope: 'browser' | 'context' | 'page';
  readonly library: 'playwright' | 'puppeteer';
  /** The browser, context or page that `scope` names. */
  readonly target: object;
  readonly onCall: OnCall;
}

/**
 * Finds the outermost call. The library calls its own methods in a call, also after it has waited: nothing but the storage connects
 * these calls with the outermost one. A handler of the user (of a dialog, a route, a pop-up) runs outside of it, because the library
 * calls handlers when a message of the browser arrives. Only what a handler of `addLocatorHandler` calls is not noted: Playwright calls
 * it inside the call that waits for it.
 *
 * The storage is in use only while there are observations: up to Node 22, it makes each promise of the process slower.
 */
const running = new AsyncLocalStorage<Pick<Followed, 'hasEnded'>>();

/** All observations of the process, for which the classes of the libraries are patched. */
const observations = new Set<NotedCalls>();

/** Where objects belong that have no public method for it, such as keyboards and handles. */
const places = new WeakMap<object, Place>();
/** The texts of Puppeteer's locators. */
const locators = new WeakMap<object, string>();
/** The prototypes that have been patched, with the library. */
const classes = new Map<object, NotedScope['library']>();

const patched = new PatchedMethods({
  begin: (object, name, args) => {
    try {
      return begin(object, name, args);
    } catch {
      // A note must not change the call.
      return undefined;
    }
  },
  running,
});

/** The calls of one observation, until `stop`. */
export class NotedCalls {
  readonly #scope: NotedScope;
  /** With the scope `page`: the page and its pop-ups. */
  readonly #pages = new WeakSet<object>();

  constructor(scope: NotedScope) {
    this.#scope = scope;
    observations.add(this);
    this.learn(scope.target);
  }

  /** Finds the class of an object, so that the calls of its objects are noted if they are in the scope. */
  learn(object: object): void {
    learn(object, this.#scope.library);
  }

  addPage(page: object): void {
    this.#pages.add(page);
    this.learn(page);
  }

  /** Whether a listener may wait for dialogs: with one, Playwright leaves them open. */
  get canListenToDialogs(): boolean {
    return this.#scope.library === 'puppeteer';
  }

  addDialog(page: object, dialog: object): void {
    learn(dialog, this.#scope.library, placeOf(page, 'page'));
  }

  includes({ browser, context, page }: Place): boolean {
    const { scope, target } = this.#scope;
    if (scope === 'page') return page !== undefined && this.#pages.has(page);
    return target === (scope === 'browser' ? browser : context);
  }

  note(text: string, at: number): OnCallEnd | undefined {
    const onEnd = this.#scope.onCall({ text, at });
    return onEnd && ((failure) => observations.has(this) && onEnd(failure));
  }

  stop(): void {
    if (!observations.delete(this) || observations.size > 0) return;
    patched.restore();
    classes.clear();
    running.disable();
  }
}

/** Runs what this package itself does with a library, whose calls are not noted. */
export function withoutNotes<T>(work: () => T): T {
  return observations.size === 0 ? work() : running.run({ hasEnded: false }, work);
}

/** Patches the class of an object, and those of the objects that it has. */
function learn(object: unknown, library: NotedScope['library'], owner?: Place): void {
  const role = roleOf(object);
  if (!role) return;
  const known = object as object;
  const place = placeOf(known, role) ?? owner;
  if (owner && place === owner) places.set(known, owner);
  const isNew = patchClass(Object.getPrototypeOf(known) as object, role, library);
  // Pages have keyboards of their own, and contexts have requests of their own.
  if (isNew || role === 'page' || role === 'context')
    for (const part of partsOf(known, role)) learn(part, library, place);
}

/** Returns false for a class that is patched already. */
function patchClass(prototype: object, role: Role, library: NotedScope['library']): boolean {
  if (classes.has(prototype)) return false;
  classes.set(prototype, library);
  const isPuppeteer = library === 'puppeteer';
  const unchanged = isPuppeteer ? (UNCHANGED_OF_PUPPETEER[role] ?? []) : [];
  const makers = isPuppeteer ? (MAKERS_OF_PUPPETEER[role] ?? []) : [];
  for (const name of [...Object.keys(METHODS[role]), ...makers])
    if (!unchanged.includes(name)) patched.patch(prototype, name);
  // With a listener of an event of dialogs or of file choosers, Playwright leaves them open.
  if (!isPuppeteer && (role === 'page' || role === 'context')) patched.override(prototype, 'emit');
  return true;
}

/** The events of Playwright with objects whose classes are reached in no other way. */
const EVENTS = new Set<unknown>(['dialog', 'filechooser', 'download']);

function begin(object: unknown, name: string, args: unknown[]): Followed | undefined {
  if (name === 'emit') {
    if (EVENTS.has(args[0])) learn(args[1], 'playwright');
    return undefined;
  }
  const outer = running.getStore();
  if (outer && !outer.hasEnded) return undefined;
  const role = roleOf(object);
  if (!role) return undefined;
  const receiver: Receiver = { object: object as object, role, locator: locators.get(object as object) };
  const place = places.get(receiver.object) ?? placeOf(receiver.object, role);
  if (!place) return undefined;
  const observing = [...observations].filter((one) => one.includes(place));
  if (observing.length === 0) return undefined;
  const library = classes.get(Object.getPrototypeOf(object) as object) ?? 'playwright';
  const isMaker = library === 'puppeteer' && MAKERS_OF_PUPPETEER[role]?.includes(name) === true;
  return isMaker
    ? new MadeLocator(place, describeLocator(receiver, name, args))
    : new FollowedCall(observing, { ...describeCall(receiver, name, args), name, place, library });
}

/** A call of Puppeteer that returns a locator. */
class MadeLocator implements Followed {
  hasEnded = false;
  readonly #place: Place;
  readonly #text: string;

  constructor(place: Place, text: string) {
    this.#place = place;
    this.#text = text;
  }

  returned(value: unknown): unknown {
    this.hasEnded = true;
    for (const locator of objectsIn(value)) {
      locators.set(locator, this.#text);
      learn(locator, 'puppeteer', this.#place);
    }
    return value;
  }

  threw(): void {
    this.hasEnded = true;
  }
}

interface CallFacts extends DescribedCall, Pick<NotedScope, 'library'> {
  readonly name: string;
  readonly place: Place;
}

/** A noted call, until it ends. */
class FollowedCall implements Followed {
  hasEnded = false;
  readonly #facts: CallFacts;
  readonly #onEnd: readonly (OnCallEnd | undefined)[];

  constructor(observing: readonly NotedCalls[], facts: CallFacts) {
    this.#facts = facts;
    const at = clock.now();
    this.#onEnd = observing.map((one) => one.note(facts.text, at));
  }

  returned(value: unknown): unknown {
    // The promise may be of another realm: in Jest's jsdom, the library is loaded outside of it.
    if (!types.isPromise(value)) return this.#succeeded(value);
    return value.then(
      (resolved: unknown) => this.#succeeded(resolved),
      (error: unknown) => {
        this.threw(error);
        throw error;
      },
    );
  }

  threw(error: unknown): void {
    this.#end(() => describeFailure(error, this.#facts.hidden));
  }

  #succeeded(value: unknown): unknown {
    const { name, place, library } = this.#facts;
    this.#end(() => {
      for (const object of objectsIn(value)) learn(object, library, place);
      return name === ASSERTION ? failureOfAssertion(value, this.#facts) : undefined;
    });
    return value;
  }

  /** A note must not change the call. */
  #end(failure: () => string | undefined): void {
    this.hasEnded = true;
    try {
      const reason = failure();
      for (const onEnd of this.#onEnd) onEnd?.(reason);
    } catch {
      // The call stays in the timeline as one that has not ended.
    }
  }
}
