import { raceTimeout } from '../../shared/abort.js';
import type { CdpClient, EventListeners, Target } from '../../wire/cdp-client.js';
import type { FrameTree } from '../../wire/message.js';
import { filterOf, type PageStarts } from '../../wire/page-starts.js';

/** Milliseconds in which pages must say whether a frame is theirs. */
const LONGEST_SEARCH = 1000;
/** Number of texts that the consoles of pages show. */
const MOST_WARNINGS = 1000;
/** Whose scripts are not ours to change, or that have none. */
const KINDS = /^(page|iframe|worker|shared_worker|service_worker)$/;

/** Where a script runs: the document or the worker of a JavaScript context. */
export interface Place {
  /** `null` if it is opaque. */
  readonly origin: string;
  readonly frameId: string | undefined;
}

/** A page, a frame of another site, or a worker of the browser, with a session of our own. */
export interface AttachedTarget extends Target {
  readonly sessionId: string;
  /** The page or frame of a worker. */
  readonly parent: AttachedTarget | undefined;
  readonly places: Map<number, Place>;
}

/** Prepares a target before its scripts run. Rejects if it is closed. */
type Prepare = (target: AttachedTarget) => Promise<unknown>;
/** The documents of a session, or that of one JavaScript context, are left: it is not known afterwards where they were. */
type Leave = (sessionId: string, contextId?: number) => void;

/** All pages, frames of other sites, and workers of a browser, from their beginning. */
export class Targets {
  /** By session. */
  readonly #attached = new Map<string, AttachedTarget>();
  #opening: Promise<void>[] = [];
  readonly #warned = new Set<string>();
  readonly #cdp: () => CdpClient;
  readonly #starts: PageStarts;
  readonly #prepare: Prepare;
  readonly #leave: Leave;

  constructor(cdp: () => CdpClient, starts: PageStarts, prepare: Prepare, leave: Leave = () => {}) {
    this.#cdp = cdp;
    this.#starts = starts;
    this.#prepare = prepare;
    this.#leave = leave;
  }

  readonly listeners: EventListeners = {
    'Target.attachedToTarget': ({ sessionId, targetInfo }, from) => {
      // A service worker has a session below each of its pages, too: what it says there, it has said.
      if ([...this.#attached.values()].some(({ targetId }) => targetId === targetInfo.targetId))
        return void this.#letRun(sessionId).catch(() => {});
      const parent = from === undefined ? undefined : this.#attached.get(from);
      const target = { ...targetInfo, sessionId, parent, places: new Map<number, Place>() };
      this.#attached.set(sessionId, target);
      const begun = this.#begin(target);
      // A worker that does not respond must not delay the connect.
      if (!target.type.endsWith('worker')) this.#opening.push(begun);
    },
    'Target.detachedFromTarget': ({ sessionId = '' }) => {
      this.#leave(sessionId);
      this.#attached.delete(sessionId);
    },
    'Inspector.targetReloadedAfterCrash': (_params, session = '') => {
      const target = this.#attached.get(session);
      // Chromium lets a service worker that was stopped wait again, and no page.
      if (target?.type === 'service_worker') void this.#begin(target);
    },
    'Runtime.executionContextCreated': ({ context: { id, origin, auxData } }, session = '') => {
      const { frameId, isDefault } = auxData ?? {};
      // The JavaScript world of a client can have another origin than the document.
      if (isDefault !== false)
        this.#attached.get(session)?.places.set(id, { origin: asOrigin(origin), frameId });
    },
    'Runtime.executionContextDestroyed': ({ executionContextId }, session = '') => {
      this.#leave(session, executionContextId);
      this.#attached.get(session)?.places.delete(executionContextId);
    },
    'Runtime.executionContextsCleared': (_params, session = '') => {
      this.#leave(session);
      this.#attached.get(session)?.places.clear();
    },
  };

  /** Attaches to all targets, now and later. Resolves when those that are open are prepared. */
  async open(): Promise<void> {
    await this.#attachBelow(undefined);
    await Promise.all(this.#opening);
    this.#opening = [];
  }

  of(sessionId: string): AttachedTarget | undefined {
    return this.#attached.get(sessionId);
  }

  /** The target that contains a frame, or has this id. */
  async containing(frameId: string): Promise<AttachedTarget | undefined> {
    const all = [...this.#attached.values()];
    const itself = all.find(({ targetId }) => targetId === frameId);
    if (itself) return itself;
    const known = all.find(({ places }) => [...places.values()].some((place) => place.frameId === frameId));
    if (known) return known;
    // A page that is busy does not answer. The frame can have been removed, while its request goes on.
    const asked = all
      .filter(({ type }) => type === 'page' || type === 'iframe')
      .map(async (target) => {
        if ((await this.frames(target, frameId)).length === 0) throw new Error('It is not there.');
        return target;
      });
    const late = () => new Error('No page has answered.');
    return raceTimeout(LONGEST_SEARCH, () => Promise.any(asked), late).catch(() => undefined);
  }

  /** The frames, or the worker, of a session or of one JavaScript context, as their requests name them. */
  framesOf(sessionId: string, contextId?: number): string[] {
    const target = this.#attached.get(sessionId);
    const places = [...(target?.places ?? [])].filter(([id]) => contextId === undefined || id === contextId);
    return places.map(([, { frameId }]) => frameId ?? target!.targetId);
  }

  /** The frames from the top of a target down to one of them. Empty if it is not there. */
  async frames({ sessionId }: AttachedTarget, frameId: string): Promise<readonly FrameTree['frame'][]> {
    // It may be closed in the meantime.
    const tree = await this.#cdp()
      .send('Page.getFrameTree', {}, sessionId)
      .catch(() => undefined);
    return (tree && pathTo(tree.frameTree, frameId)) ?? [];
  }

  /** The origin of a document or a worker. Undefined if it is not known. */
  async originOf(frameId: string): Promise<string | undefined> {
    const target = await this.containing(frameId);
    if (target === undefined) return undefined;
    if (target.type.endsWith('worker')) return new URL(target.url).origin;
    const known = originOf(target, frameId);
    // A page that waits for a synchronous request does not answer.
    if (known !== undefined) return known;
    const frames = await this.frames(target, frameId);
    return frames.findLast(({ url }) => !url.startsWith('about:'))?.securityOrigin;
  }

  /** Shows a text once in the console of the page, or of the worker, that contains a frame. */
  async warn(frameId: string, text: string): Promise<void> {
    if (this.#warned.has(text) || this.#warned.size >= MOST_WARNINGS) return;
    this.#warned.add(text);
    const expression = `console.warn(${JSON.stringify(`exposeNetwork: ${text}`)})`;
    const target = await this.containing(frameId);
    // It may be closed in the meantime.
    if (target)
      await this.#cdp()
        .send('Runtime.evaluate', { expression }, target.sessionId)
        .catch(() => {});
  }

  async #begin(target: AttachedTarget): Promise<void> {
    const isOurs = KINDS.test(target.type);
    const prepared = isOurs ? this.#prepare(target) : undefined;
    // The browser handles commands in order. It may be closed in the meantime.
    const reached = isOurs ? this.#attachBelow(target) : undefined;
    await Promise.allSettled([prepared, reached, this.#goOn(target, reached)]);
  }

  async #goOn({ targetId, sessionId }: AttachedTarget, reached: Promise<void> | undefined): Promise<void> {
    if (!this.#starts.isHeld) return this.#letRun(sessionId);
    // The browser responds after it has passed the commands on.
    await reached;
    this.#starts.ready(this, targetId);
  }

  async #letRun(sessionId: string): Promise<void> {
    if (!this.#starts.isHeld) await this.#cdp().send('Runtime.runIfWaitingForDebugger', {}, sessionId);
  }

  /** No target waits for this object any longer. */
  close(): void {
    this.#starts.leave(this);
  }

  async #attachBelow(target: AttachedTarget | undefined): Promise<void> {
    const { sessionId, targetId: below } = target ?? {};
    const how = { autoAttach: true, waitForDebuggerOnStart: !this.#starts.isHeld, flatten: true };
    const done = this.#cdp().send('Target.setAutoAttach', how, sessionId);
    const attaching = { below, done, preparesAgain: true };
    if (this.#starts.isHeld) this.#starts.attach(this, sessionId ?? '', filterOf(undefined), attaching);
    await done;
  }
}

function pathTo({ frame, childFrames = [] }: FrameTree, id: string): FrameTree['frame'][] | undefined {
  if (frame.id === id) return [frame];
  for (const child of childFrames) {
    const path = pathTo(child, id);
    if (path) return [frame, ...path];
  }
  return undefined;
}

/** The page, or the frame of another site, in which a worker was started. */
export function pageOf(target: AttachedTarget): AttachedTarget {
  let page = target;
  while (page.parent && page.type.endsWith('worker')) page = page.parent;
  return page;
}

/** Of a worker, the browser names the URL of its script. */
function asOrigin(origin: string): string {
  return URL.canParse(origin) ? new URL(origin).origin : 'null';
}

/**
 * Returns the origin of a frame, or of the worker that a target is: `null` if it is opaque. Undefined if it is not known yet. A blank
 * frame has the origin of the document that contains it.
 */
export function originOf({ targetId, places }: AttachedTarget, frameId: string): string | undefined {
  const all = [...places.values()];
  const place =
    all.findLast((one) => one.frameId === frameId) ?? all.find((one) => one.frameId === undefined);
  return place && (place.frameId === frameId || targetId === frameId) ? place.origin : undefined;
}
