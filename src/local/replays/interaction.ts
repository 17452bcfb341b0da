import { isRecord, parseJson } from '../../shared/json.js';

/** Calls back from the pages. It stands in a world of its own, where the page's scripts don't see it. */
export const BINDING = 'pooledBrowserInteraction';
export const WORLD = 'pooled-browser-recorder';

/**
 * Tells clicks, and that keys were pressed, of a person or a driver. Never which keys: they may be a password's. The text
 * of what was clicked is a button's or a link's only, for that of others may be anything. The rest says that this page is
 * being used: Chromium does not tell which page Playwright brings to front.
 */
export const INTERACTION_SCRIPT = `(() => {
  if (globalThis.isListening) return;
  globalThis.isListening = true;
  const name = (element) => {
    const control = element.closest('a, button, summary, [role=button], [role=link]');
    const { localName, id } = control ?? element;
    const label = element.getAttribute('aria-label') ?? control?.textContent ?? '';
    return (localName + (id && '#' + id) + ' ' + label.trim().slice(0, 60)).trim();
  };
  const tell = (kind, event) => {
    const [element] = event.composedPath();
    if (event.isTrusted && element instanceof Element) ${BINDING}(JSON.stringify({ kind, text: name(element) }));
  };
  addEventListener('click', (event) => tell('click', event), true);
  const tellPauses = (kind, types) => {
    let last = -Infinity;
    const listen = (event) => {
      if (event.timeStamp - last > 1000) tell(kind, event);
      last = event.timeStamp;
    };
    for (const type of types) addEventListener(type, listen, { capture: true, passive: true });
  };
  tellPauses('key', ['keydown']);
  tellPauses('use', ['pointerdown', 'pointermove', 'wheel', 'input', 'focusin']);
})()`;

/** What a call of the binding tells. */
export function readInteraction(payload: unknown): { kind: 'click' | 'key'; text: string } | undefined {
  const told = typeof payload === 'string' ? parseJson(payload) : undefined;
  if (!isRecord(told) || typeof told['text'] !== 'string') return undefined;
  const { kind, text } = told;
  if (kind === 'click') return { kind, text: `click on ${text}` };
  return kind === 'key' ? { kind, text: `keys in ${text}` } : undefined;
}
