import type { CdpClient, EventListeners, Target } from '../../connect/cdp-client.js';
import type { FrameTree } from '../../connect/message.js';

/** Whose scripts are not ours to change, or that have none. */
const KINDS = /^(page|iframe|worker|shared_worker|service_worker)$/;

/** Where a script runs: the document or the worker of a JavaScript context. */
interface Place {
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

/** All pages, frames of other sites, and workers of a browser, from their beginning. */
export class Targets {
  /** By session. */
  readonly #attached = new Map<string, AttachedTarget>();
  #opening: Promise<void>[] = [];
  readonly #cdp: () => CdpClient;
  readonly #prepare: Prepare;

  constructor(cdp: () => CdpClient, prepare: Prepare) {
    this.#cdp = cdp;
    this.#prepare = prepare;
  }

  readonly listeners: EventListeners = {
    'Target.attachedToTarget': ({ sessionId, targetInfo }, _data, from) => {
      const parent = from === undefined ? undefined : this.#attached.get(from);
      const target = { ...targetInfo, sessionId, parent, places: new Map<number, Place>() };
      this.#attached.set(sessionId, target);
      const begun = this.#begin(target);
      // A worker that does not respond must not delay the connect.
      if (!target.type.endsWith('worker')) this.#opening.push(begun);
    },
    'Target.detachedFromTarget': ({ sessionId = '' }) => void this.#attached.delete(sessionId),
    'Runtime.executionContextCreated': ({ context: { id, origin, auxData } }, _data, session = '') =>
      void this.#attached.get(session)?.places.set(id, { origin, frameId: auxData?.frameId }),
    'Runtime.executionContextsCleared': (_params, _data, session = '') =>
      this.#attached.get(session)?.places.clear(),
  };

  /** Attaches to all targets, now and later. Resolves when those that are open are prepared. */
  async open(): Promise<void> {
    this.#attached.clear();
    this.#opening = [];
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
    for (const target of all)
      if (target.type === 'page' || target.type === 'iframe')
        if ((await this.frames(target, frameId)).length > 0) return target;
    return undefined;
  }

  /** The frames from the top of a target down to one of them. Empty if it is not there. */
  async frames({ sessionId }: AttachedTarget, frameId: string): Promise<readonly FrameTree['frame'][]> {
    // It may be closed in the meantime.
    const tree = await this.#cdp()
      .send('Page.getFrameTree', {}, sessionId)
      .catch(() => undefined);
    return (tree && pathTo(tree.frameTree, frameId)) ?? [];
  }

  async #begin(target: AttachedTarget): Promise<void> {
    const { sessionId, type } = target;
    const prepared = KINDS.test(type)
      ? Promise.all([this.#prepare(target), this.#attachBelow(sessionId)])
      : undefined;
    // The browser handles commands in order. It may be closed in the meantime.
    const started = this.#cdp().send('Runtime.runIfWaitingForDebugger', {}, sessionId);
    await Promise.allSettled([prepared, started]);
  }

  async #attachBelow(sessionId: string | undefined): Promise<void> {
    const how = { autoAttach: true, waitForDebuggerOnStart: true, flatten: true };
    await this.#cdp().send('Target.setAutoAttach', how, sessionId);
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
