import { raceTimeout } from '../../shared/abort.js';
import type { CdpClient, EventListeners, OwnClient } from '../../wire/cdp-client.js';
import type { FrameTree, Session } from '../../wire/layer.js';
import type { Opening } from '../../drivers/extension.js';

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
  /** The id of the frame, or of the worker, as their requests name it. */
  readonly frameId: string;
}

/** Prepares a target before its scripts run. Rejects if it is closed. */
type Prepare = (session: Session) => Promise<unknown>;
/** The documents of a session, or that of one JavaScript context, are left: it is not known afterwards where they were. */
type Leave = (sessionId: string, contextId?: number) => void;

interface TargetsPlan {
  /** The connection of our own, and our client of it. */
  readonly client: OwnClient;
  readonly cdp: () => CdpClient;
  readonly shared: Pick<Opening['shared'], 'sessions' | 'waiting'>;
  readonly prepare: Prepare;
  readonly leave?: Leave;
}

/** All pages, frames of other sites, and workers of a browser, from their beginning, with a session of our own each. */
export class Targets {
  /** The documents and workers of each of our sessions, by their JavaScript contexts. */
  readonly #places = new WeakMap<Session, Map<number, Place>>();
  /** What is being prepared until all that is open is. */
  #opening: Promise<void>[] | undefined = [];
  readonly #warned = new Set<string>();
  readonly #client: OwnClient;
  readonly #cdp: () => CdpClient;
  readonly #shared: Pick<Opening['shared'], 'sessions' | 'waiting'>;
  readonly #prepare: Prepare;
  readonly #leave: Leave;

  constructor({ client, cdp, shared, prepare, leave = () => {} }: TargetsPlan) {
    this.#client = client;
    this.#cdp = cdp;
    this.#shared = shared;
    this.#prepare = prepare;
    this.#leave = leave;
  }

  readonly listeners: EventListeners = {
    'Target.attachedToTarget': ({ sessionId }) => {
      const session = this.#shared.sessions.get(sessionId);
      if (!session) return;
      // A service worker has a session below each of its pages, too: what it says there, it has said.
      if (this.#all.some(({ target }) => target.id === session.target.id))
        return void this.#resume(session).catch(() => {});
      this.#places.set(session, new Map());
      const begun = this.#begin(session);
      // A worker that does not respond must not delay the connect.
      if (!session.target.type.endsWith('worker')) this.#opening?.push(begun);
    },
    'Target.detachedFromTarget': ({ sessionId = '' }) => {
      this.#leave(sessionId);
    },
    'Inspector.targetReloadedAfterCrash': (_params, sessionId = '') => {
      const session = this.of(sessionId);
      // Chromium lets a service worker that was stopped wait again, and no page.
      if (session?.target.type === 'service_worker') void this.#begin(session);
    },
    'Runtime.executionContextCreated': ({ context: { id, origin, auxData } }, sessionId = '') => {
      const { frameId = this.of(sessionId)?.target.id ?? '', isDefault } = auxData ?? {};
      // The JavaScript world of a client can have another origin than the document.
      if (isDefault !== false) this.#placesOf(sessionId)?.set(id, { origin: asOrigin(origin), frameId });
    },
    'Runtime.executionContextDestroyed': ({ executionContextId }, sessionId = '') => {
      this.#leave(sessionId, executionContextId);
      this.#placesOf(sessionId)?.delete(executionContextId);
    },
    'Runtime.executionContextsCleared': (_params, sessionId = '') => {
      this.#leave(sessionId);
      this.#placesOf(sessionId)?.clear();
    },
  };

  /** Attaches to all targets, now and later. Resolves when those that are open are prepared. */
  async open(): Promise<void> {
    await this.#attachBelow();
    const opening = this.#opening ?? [];
    this.#opening = undefined;
    await Promise.all(opening);
  }

  get #all(): readonly Session[] {
    return this.#shared.sessions.all(this.#client).filter((one) => this.#places.has(one));
  }

  #placesOf(sessionId: string): Map<number, Place> | undefined {
    const session = this.#shared.sessions.get(sessionId);
    return session && this.#places.get(session);
  }

  /** One of our own sessions. */
  of(sessionId: string): Session | undefined {
    return this.#placesOf(sessionId) && this.#shared.sessions.get(sessionId);
  }

  /** Where the scripts of a JavaScript context run. */
  placeOf(sessionId: string, contextId: number): Place | undefined {
    return this.#placesOf(sessionId)?.get(contextId);
  }

  /** The page, frame of another site, or worker that contains a frame, or has this id. */
  async containing(frameId: string): Promise<Session | undefined> {
    const itself = this.#all.find(({ target }) => target.id === frameId);
    const known = itself ?? this.#all.find((one) => this.knownOriginOf(one, frameId) !== undefined);
    if (known) return known;
    // A page that is busy does not answer. The frame can have been removed, while its request goes on.
    const asked = this.#all
      .filter(({ target }) => /^(page|iframe)$/.test(target.type))
      .map(async (session) => {
        if ((await this.frames(session, frameId)).length === 0) throw new Error('It is not there.');
        return session;
      });
    const late = () => new Error('No page has answered.');
    return raceTimeout(LONGEST_SEARCH, () => Promise.any(asked), late).catch(() => undefined);
  }

  /** The frames, or the worker, of a session or of one JavaScript context, as their requests name them. */
  framesOf(sessionId: string, contextId?: number): string[] {
    const places = [...(this.#placesOf(sessionId) ?? [])];
    return places.flatMap(([id, { frameId }]) =>
      contextId === undefined || id === contextId ? frameId : [],
    );
  }

  /** The frames from the top of a target down to one of them. Empty if it is not there. */
  async frames({ id }: Session, frameId: string): Promise<readonly FrameTree['frame'][]> {
    // It may be closed in the meantime.
    const tree = await this.#cdp()
      .send('Page.getFrameTree', {}, id)
      .catch(() => undefined);
    return (tree && pathTo(tree.frameTree, frameId)) ?? [];
  }

  /** The origin of a document or a worker. Undefined if it is not known. */
  async originOf(frameId: string): Promise<string | undefined> {
    const session = await this.containing(frameId);
    if (session === undefined) return undefined;
    if (session.target.type.endsWith('worker')) return new URL(session.url).origin;
    const known = this.knownOriginOf(session, frameId);
    // A page that waits for a synchronous request does not answer.
    if (known !== undefined) return known;
    const frames = await this.frames(session, frameId);
    return frames.findLast((one) => !one.url.startsWith('about:'))?.securityOrigin;
  }

  /** Returns the origin of a frame or worker of a session: `null` if it is opaque. Undefined if it is not known yet. */
  knownOriginOf(session: Session, frameId: string): string | undefined {
    return [...(this.#places.get(session)?.values() ?? [])].findLast((one) => one.frameId === frameId)
      ?.origin;
  }

  /** Shows a text once in the console of the page, or of the worker, that contains a frame. */
  async warn(frameId: string, text: string): Promise<void> {
    if (this.#warned.has(text) || this.#warned.size >= MOST_WARNINGS) return;
    this.#warned.add(text);
    const expression = `console.warn(${JSON.stringify(`exposeNetwork: ${text}`)})`;
    const session = await this.containing(frameId);
    // It may be closed in the meantime.
    if (session)
      await this.#cdp()
        .send('Runtime.evaluate', { expression }, session.id)
        .catch(() => {});
  }

  async #begin(session: Session): Promise<void> {
    const isOurs = KINDS.test(session.target.type);
    const prepared = isOurs ? this.#prepare(session) : undefined;
    // The browser handles commands in order. It may be closed in the meantime.
    const reached = isOurs ? this.#attachBelow(session) : undefined;
    await Promise.allSettled([prepared, reached, this.#resume(session, reached)]);
  }

  #resume(session: Session, reached?: Promise<void>): Promise<void> {
    return this.#shared.waiting.resume(this.#cdp(), session, reached);
  }

  #attachBelow(session?: Session): Promise<void> {
    return this.#shared.waiting.attach(this.#client, this.#cdp(), session);
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
export function pageOf(session: Session): Session {
  const { parent, target } = session;
  const isBelow = parent && parent.target.type !== 'browser' && target.type.endsWith('worker');
  return isBelow ? pageOf(parent) : session;
}

/** Returns the origin. The browser names the URL of its script for a worker. */
function asOrigin(origin: string): string {
  return URL.canParse(origin) ? new URL(origin).origin : 'null';
}
