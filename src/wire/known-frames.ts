import type { EventParams, Layer, WireEvent } from './layer.js';

/** Most frames of a page, so that a browser that opens ever more does not fill the memory. */
const MOST = 100_000;

interface Named {
  readonly frameId?: unknown;
  readonly frame?: { readonly parentId?: unknown } | undefined;
}
type Next = () => void | Promise<void>;

/** Passes the beginning of a frame on once: a library throws at a second one where nobody can catch it. */
export function knownFrames(): Layer {
  const known = new Map<string | undefined, Set<unknown>>();
  const of = (sessionId: string | undefined) => {
    const frames = known.get(sessionId) ?? new Set();
    known.set(sessionId, frames);
    return frames;
  };
  const events = {
    'Page.frameAttached': ({ params, sessionId }: WireEvent<Named>, next: Next) => {
      const frames = of(sessionId);
      if (frames.has(params.frameId)) return;
      if (frames.size < MOST) frames.add(params.frameId);
      return next();
    },
    'Page.frameDetached': ({ params, sessionId }: WireEvent<Named>, next: Next) => {
      of(sessionId).delete(params.frameId);
      return next();
    },
    'Target.detachedFromTarget': (
      { params }: WireEvent<EventParams<'Target.detachedFromTarget'>>,
      next: Next,
    ) => {
      known.delete(params.sessionId);
      return next();
    },
    // The frames of the document before it end without an event.
    'Page.frameNavigated': ({ params, sessionId }: WireEvent<Named>, next: Next) => {
      if (params.frame?.parentId === undefined) known.delete(sessionId);
      return next();
    },
  };
  return { name: 'known-frames', events };
}
