import { newId } from '../../shared/ids.js';

/**
 * The isolated world of a recording's scripts, where the scripts of a page cannot see or change them. Chromium has one world
 * for all sessions that use the same name: each recording has its own.
 */
export class RecorderWorld {
  readonly name = `pooled-browser-recorder-${newId()}`;
  /** The script that finds what to hide. The other scripts of the recorder follow it. */
  readonly script: string;

  /** @param hide Selectors of elements that the recording does not show. */
  constructor(hide: readonly string[]) {
    this.script = `(${MASK_SCRIPT})(${JSON.stringify(hide)})`;
  }
}

/** The function that the scripts call. It exists in this world only. */
export const BINDING = 'pooledBrowserInteraction';

/** Elements to hide, and frames, of one document. Above that, the whole document is hidden. */
const MOST_ELEMENTS = 200;

/** Milliseconds after which the script ends a measurement whose end nobody requests. */
const LONGEST_MEASUREMENT = 5_000;

/** Milliseconds that the end of a measurement waits for a frame of the page. A page that is not visible has none. */
const FRAME_WAIT = 100;

/** Milliseconds after which the browser shows the first frame of a new document in a frame of another site. */
const SETTLE_TIME = 200;

/**
 * Finds the elements to hide: password fields, and elements that match one of the selectors `HIDE`. It
 * measures where they are from `begin` to `end`: in each frame that the page shows in between, after its layout, because
 * an animation can move them and return. It measures the frames of its site with their elements. A frame of another site has
 * its own script, and reports itself as `document`; `masks.ts` puts their answers together.
 *
 * A field stays secret once its type was `password`: buttons that show a password change the type. Pages can also replace the
 * field: another field with the same name or id is secret too.
 *
 * The script uses no member of an element or a document directly that the name of another element can replace, as
 * `<form name="querySelectorAll">` does.
 */
const MASK_SCRIPT = `(HIDE) => {
  if (Object.hasOwn(globalThis, 'recorderMasks')) return;
  const PASSWORD = 'input[type=password i], input[autocomplete~=current-password i], input[autocomplete~=new-password i]';
  const FRAMES = 'iframe, frame, object, embed, fencedframe';
  const rectOf = (element) => Reflect.apply(Element.prototype.getBoundingClientRect, element, []);
  const matches = (element, selector) => Reflect.apply(Element.prototype.matches, element, [selector]);
  const getter = ({ prototype }, name) => {
    const { get } = Object.getOwnPropertyDescriptor(prototype, name);
    return (object) => Reflect.apply(get, object, []);
  };
  const shadowOf = getter(Element, 'shadowRoot');
  const slotOf = getter(Element, 'assignedSlot');
  const parentOf = getter(Node, 'parentNode');
  const typeOf = getter(Node, 'nodeType');
  const isElement = (node) => typeOf(node) === Node.ELEMENT_NODE;
  const nameOf = getter(Element, 'localName');
  const namespaceOf = getter(Element, 'namespaceURI');
  const documentElementOf = getter(Document, 'documentElement');
  const find = (root, selector) => {
    const { prototype } = isElement(root) ? Element : typeOf(root) === Node.DOCUMENT_NODE ? Document : DocumentFragment;
    return Reflect.apply(prototype.querySelectorAll, root, [selector]);
  };

  const secret = new WeakSet();
  const names = new Set();
  const remember = (field) => {
    if (secret.has(field)) return;
    secret.add(field);
    for (const name of [field.name, field.id]) if (name && names.size < ${MOST_ELEMENTS}) names.add(name);
  };
  const noteChanges = (changes) => {
    for (const { target, oldValue } of changes)
      if (/^password$/i.test(oldValue) && nameOf(target) === 'input') remember(target);
  };
  const observer = new MutationObserver(noteChanges);
  const observed = new WeakSet();
  const observe = (root) => {
    if (observed.has(root)) return;
    observed.add(root);
    observer.observe(root, { subtree: true, attributeFilter: ['type'], attributeOldValue: true });
  };
  observe(document);
  const onUse = ({ target }) => {
    if (target instanceof Element && matches(target, PASSWORD)) remember(target);
  };
  const listen = () => {
    for (const type of ['input', 'focusin']) addEventListener(type, onUse, { capture: true, passive: true });
  };
  listen();
  // document.open() removes all listeners.
  new MutationObserver(listen).observe(document, { childList: true });

  // The document and its shadow roots.
  const rootsOf = (root) => {
    const roots = [root];
    for (const one of roots) {
      observe(one);
      const walker = Reflect.apply(Document.prototype.createTreeWalker, document, [one, NodeFilter.SHOW_ELEMENT]);
      // Half of the time of a call of the getter: only a form can have a member of this name, and it has no shadow root.
      for (let element = walker.nextNode(); element; element = walker.nextNode())
        if (element.shadowRoot && nameOf(element) !== 'form') roots.push(element.shadowRoot);
    }
    return roots;
  };

  const isField = (element) => ['input', 'textarea'].includes(nameOf(element));
  const isSecret = (field) =>
    secret.has(field) || (field.name !== '' && names.has(field.name)) || (field.id !== '' && names.has(field.id));
  // Fields, with false, and elements that match a selector, with true: their content can be outside of them.
  const elementsIn = (roots) => {
    noteChanges(observer.takeRecords());
    const found = new Map();
    for (const root of roots) for (const field of find(root, PASSWORD)) remember(field);
    for (const root of roots) {
      for (const field of find(root, 'input, textarea')) if (isSecret(field)) found.set(field, false);
      for (const selector of HIDE) for (const element of find(root, selector)) found.set(element, true);
    }
    return found;
  };

  const add = (box, { left, top, right, bottom }) => {
    if (right - left <= 0 && bottom - top <= 0) return;
    box.left = Math.min(box.left, left);
    box.top = Math.min(box.top, top);
    box.right = Math.max(box.right, right);
    box.bottom = Math.max(box.bottom, bottom);
  };
  const none = () => ({ left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity });
  const contentRect = (node) => {
    const range = new Range();
    range.selectNodeContents(node);
    return range.getBoundingClientRect();
  };
  const boxOf = (element, hasContent) => {
    const box = none();
    add(box, rectOf(element));
    if (!hasContent) return box;
    const { overflowX, overflowY } = getComputedStyle(element);
    const within = find(element, '*');
    if (overflowX === 'visible' || overflowY === 'visible' || within.length > 1000) add(box, contentRect(element));
    else
      for (const one of within) if (/absolute|fixed/.test(getComputedStyle(one).position)) add(box, rectOf(one));
    const shadow = shadowOf(element);
    if (shadow) add(box, contentRect(shadow));
    return box;
  };

  // Extends where a thing was by where it is, and by its largest step: the picture can show it further than measured.
  const extend = (seen, key, box) => {
    const known = seen.get(key);
    if (!known) return void seen.set(key, { box, last: box, across: 0, down: 0 });
    if (box.left === Infinity) return;
    const { last } = known;
    if (last.left !== Infinity) {
      const step = (one, other) => Math.max(Math.abs(box[one] - last[one]), Math.abs(box[other] - last[other]));
      known.across = Math.max(known.across, step('left', 'right'));
      known.down = Math.max(known.down, step('top', 'bottom'));
    }
    known.last = box;
    known.box = { ...known.box };
    add(known.box, box);
  };

  const contentOf = (frame) => {
    try {
      return frame.contentDocument ?? undefined;
    } catch {}
  };
  const viewOf = () => {
    const { width, height, offsetLeft, offsetTop, scale } = visualViewport;
    return [innerWidth, innerHeight, width, height, offsetLeft, offsetTop, scale];
  };

  let measurement;
  const measure = (isComplete) => {
    const { documents } = measurement;
    // A list that grows: the frames of a document are measured after it.
    const queue = new Map([[document, globalThis]]);
    for (const [one, view] of queue) {
      const known = documents.get(one) ?? { elements: new Map(), frames: new Map(), roots: [], isTooMany: false };
      documents.set(one, known);
      if (isComplete || known.roots.length === 0) known.roots = rootsOf(one);
      const masks = (one !== document && Object.hasOwn(view, 'recorderMasks') && view.recorderMasks) || own;
      const elements = masks.elementsIn(known.roots);
      const frames = known.roots.flatMap((root) => [...find(root, FRAMES)]);
      if (elements.size > ${MOST_ELEMENTS} || frames.length > ${MOST_ELEMENTS}) known.isTooMany = true;
      if (known.isTooMany) continue;
      for (const [element, hasContent] of elements) extend(known.elements, element, boxOf(element, hasContent));
      for (const frame of frames) {
        const content = contentOf(frame);
        if (!content && !frame.contentWindow && frame.localName !== 'fencedframe') continue;
        extend(known.frames, frame, boxOf(frame, false));
        const seen = known.frames.get(frame);
        if (!Object.hasOwn(seen, 'was')) seen.was = content;
        seen.isReplaced ||= seen.was !== content;
        if (content) queue.set(content, frame.contentWindow);
      }
    }
    const view = String(viewOf());
    measurement.isUncertain ||= (measurement.view ??= view) !== view;
    measurement.onMeasured();
  };
  const fail = () => {
    if (measurement) measurement.hasFailed = true;
  };
  const measureEachFrame = (current) =>
    requestAnimationFrame(() => {
      if (measurement !== current || performance.now() > current.until) return;
      // It is called after the layout, and after the callbacks of the page.
      const afterLayout = new ResizeObserver(() => {
        afterLayout.disconnect();
        if (measurement !== current) return;
        try {
          measure(false);
        } catch {
          fail();
        }
      });
      const element = documentElementOf(document);
      if (element) afterLayout.observe(element);
      measureEachFrame(current);
    });

  // Whether the frame is shown as it is, or only scaled: then places in it are known.
  const isUpright = (frame) => {
    for (let one = frame; one; one = parentElementOf(one)) {
      const { transform, rotate, scale, perspective, offsetPath } = getComputedStyle(one);
      if (!namespaceOf(one)?.endsWith('/xhtml') || rotate !== 'none' || perspective !== 'none') return false;
      if (offsetPath !== 'none' && offsetPath !== undefined) return false;
      if (scale.includes('-')) return false;
      if (transform === 'none') continue;
      const { a, b, c, d, is2D } = new DOMMatrix(transform);
      if (!is2D || a <= 0 || d <= 0 || b !== 0 || c !== 0) return false;
    }
    return true;
  };
  const composedParentOf = (node) =>
    (isElement(node) && slotOf(node)) || parentOf(node) || (typeOf(node) === Node.DOCUMENT_FRAGMENT_NODE ? node.host : null);
  const parentElementOf = (element) => {
    let node = composedParentOf(element);
    while (node && !isElement(node)) node = composedParentOf(node);
    return node;
  };
  // Where places of a frame's document are in the document around it: left, top, and the factors.
  const placeOf = (frame) => {
    const { left, top, width, height } = rectOf(frame);
    const across = width / frame.offsetWidth;
    const down = height / frame.offsetHeight;
    const { paddingLeft, paddingTop } = getComputedStyle(frame);
    const x = left + (frame.clientLeft + parseFloat(paddingLeft)) * across;
    const y = top + (frame.clientTop + parseFloat(paddingTop)) * down;
    const place = [x, y, across, down];
    return isUpright(frame) && place.every(Number.isFinite) ? place : null;
  };
  // The number of each frame in the frame around it, from the top. Null for a frame in a shadow root, which has no number.
  const pathOf = (view) => {
    const path = [];
    for (; view !== view.parent; view = view.parent) {
      const number = Array.from({ length: Math.min(view.parent.length, 1000) }).findIndex((_, at) => view.parent[at] === view);
      if (number < 0) return null;
      path.unshift(number);
    }
    return path.join('.');
  };
  const edges = ({ box, across, down }) =>
    [box.left - across, box.top - down, box.right + across, box.bottom + down];
  const isShown = ({ box }) => box.left !== Infinity;
  const answer = ({ documents }) => {
    const list = [...documents.keys()];
    // The number of the frame's document in this answer, its path in the page, null in a shadow root, false if unknown.
    const targetOf = ([frame, { isReplaced }]) => {
      if (isReplaced || !frame.contentWindow) return false;
      const content = contentOf(frame);
      return content ? list.indexOf(content) : pathOf(frame.contentWindow);
    };
    const frameOf = ([frame, seen]) => {
      const place = seen.across + seen.down > 1 ? null : placeOf(frame);
      return { edges: edges(seen), to: targetOf([frame, seen]), place };
    };
    return {
      path: pathOf(globalThis),
      view: viewOf(),
      documents: list.map((one) => {
        const { elements, frames, isTooMany } = documents.get(one);
        return {
          isTooMany,
          elements: isTooMany ? [] : [...elements.values()].filter(isShown).map(edges),
          placeless: [...frames].filter((frame) => targetOf(frame) === null).length,
          frames: isTooMany ? [] : [...frames].filter(([, seen]) => isShown(seen)).map(frameOf),
        };
      }),
    };
  };

  // A page that the browser keeps to go back to it.
  let isKept = false;
  const begin = () => {
    if (isKept) return false;
    const until = performance.now() + ${LONGEST_MEASUREMENT};
    measurement = { documents: new Map(), until, onMeasured: () => {} };
    try {
      measure(true);
    } catch {
      fail();
    }
    measureEachFrame(measurement);
    return true;
  };
  const end = async () => {
    const current = measurement;
    if (!current || isKept || performance.now() > current.until) return '';
    try {
      measure(true);
      // What the compositor moves, as with a scroll, is measured a frame later.
      if ([...current.documents.values()].some(({ elements }) => elements.size > 0)) {
        await new Promise((resolve) => {
          current.onMeasured = resolve;
          setTimeout(resolve, ${FRAME_WAIT});
        });
        if (measurement === current) measure(true);
      }
      if (measurement !== current || current.hasFailed || current.isUncertain) return '';
      return JSON.stringify(answer(current));
    } catch {
      return '';
    } finally {
      if (measurement === current) measurement = undefined;
    }
  };

  const isHidden = (element) => {
    try {
      for (let one = element; one; one = composedParentOf(one))
        if (isElement(one) && ((isField(one) && (matches(one, PASSWORD) || isSecret(one))) || HIDE.some((selector) => matches(one, selector))))
          return true;
      const outer = globalThis.frameElement;
      return outer !== null && Object.hasOwn(parent, 'recorderMasks') && parent.recorderMasks.isHidden(outer);
    } catch {
      return true;
    }
  };
  const containsHidden = (element) => {
    try {
      return HIDE.some((selector) => find(element, selector).length > 0);
    } catch {
      return true;
    }
  };

  const own = { begin, end, elementsIn, isHidden, containsHidden };
  Object.defineProperty(globalThis, 'recorderMasks', { value: own });
  // The script of a document of the same site measures this one too.
  const isMeasuredByParent = () => {
    try {
      return parent !== globalThis && parent.document !== undefined;
    } catch {
      return false;
    }
  };
  const report = () => {
    if (!isMeasuredByParent() && typeof ${BINDING} === 'function') ${BINDING}('{"kind":"document"}');
  };
  addEventListener('pagehide', () => (isKept = true));
  addEventListener('pageshow', () => {
    if (isKept) report();
    isKept = false;
  });
  // A frame of another site shows its document before until this one has a frame, and the browser has received it. The capture of
  // a page waits for the page's own document only.
  if (top === globalThis) report();
  else requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(report, ${SETTLE_TIME})));
}`;
