import type { Layer } from './layer.js';

/** Most frames of a page, so that a browser that opens ever more does not fill the memory. */
const MOST = 100_000;

/** Passes the beginning of a frame on once: a library throws at a second one where nobody can catch it. */
export function knownFrames(): Layer {
  const known = new Map<string | undefined, Set<string>>();
  const of = (sessionId: string | undefined) => {
    const frames = known.get(sessionId) ?? new Set();
    known.set(sessionId, frames);
    return frames;
  };
  // The type of a layer has the events that are read: a handler of another one would see no parameters.
  const events: Layer['events'] = {
    'Page.frameAttached': ({ params, sessionId }, next) => {
      const frames = of(sessionId);
      if (frames.has(params.frameId)) return;
      if (frames.size < MOST) frames.add(params.frameId);
      return next();
    },
    'Page.frameDetached': ({ params, sessionId }, next) => {
      of(sessionId).delete(params.frameId);
      return next();
    },
    'Target.detachedFromTarget': ({ params }, next) => {
      known.delete(params.sessionId);
      return next();
    },
    // The frames of the document before it end without an event.
    'Page.frameNavigated': ({ params, sessionId }, next) => {
      if (params.frame.parentId === undefined) known.delete(sessionId);
      return next();
    },
  };
  return { name: 'known-frames', events };
}
