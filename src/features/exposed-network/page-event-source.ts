import type { BridgeInPage } from './page-bridge.js';

/**
 * Hides from a page, or a worker, that its EventSources connect again after each part of their streams. Runs there, before the page's
 * own scripts, and so uses nothing of this module.
 *
 * @param partEnds The type of the event that ends a part.
 */
export function hideReconnects(_bridge: BridgeInPage, partEnds: string): void {
  const Native = globalThis.EventSource;
  if (typeof Native !== 'function') return;
  const readyState = Object.getOwnPropertyDescriptor(Native.prototype, 'readyState');
  const stateOf = (source: EventSource) => readyState?.get?.call(source) as number;
  /** Those whose part has ended, and those that connect again. */
  const ended = new WeakSet<EventSource>();
  const reopening = new WeakSet<EventSource>();
  Object.defineProperty(Native.prototype, 'readyState', {
    get(this: EventSource) {
      const state = stateOf(this);
      return state === 0 && (ended.has(this) || reopening.has(this)) ? 1 : state;
    },
    configurable: true,
    enumerable: true,
  });
  globalThis.EventSource = new Proxy(Native, {
    construct(target, parameters: [string | URL], newTarget) {
      const source = Reflect.construct(target, parameters, newTarget) as EventSource;
      // Before all listeners of the page.
      source.addEventListener(partEnds, () => ended.add(source));
      source.addEventListener('error', (event) => {
        reopening.delete(source);
        if (!ended.delete(source) || stateOf(source) !== 0) return;
        reopening.add(source);
        event.stopImmediatePropagation();
      });
      source.addEventListener('open', (event) => {
        if (reopening.delete(source)) event.stopImmediatePropagation();
      });
      return source;
    },
  });
}
