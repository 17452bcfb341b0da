/** Finds an element of the page's HTML. @throws if the id is missing, or its element has another class. */
export function byId<E extends HTMLElement = HTMLElement>(id: string, kind = HTMLElement as new () => E): E {
  const element = document.getElementById(id);
  if (element instanceof kind) return element;
  throw new Error(`This page has no element #${id}.`);
}

/** Creates an element. Strings become text nodes, so that text from browsers and pages is never parsed as HTML. */
export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A link that opens in a new tab. @param label Names the target, because the text of many links is the same. */
export function newTabLink(text: string, label: string, href: string): HTMLElement {
  return make('a', { href, target: '_blank', rel: 'noreferrer', 'aria-label': label }, text);
}

/** Shows a time in the zone and the language of the reader. Leaves out the date of today, and seconds if it is short. */
export function timeOf(date: Date, timeStyle: 'short' | 'medium' = 'short'): HTMLElement {
  const isToday = date.toDateString() === new Date().toDateString();
  const text = date.toLocaleString([], { timeStyle, ...(!isToday && { dateStyle: 'medium' }) });
  const title = date.toLocaleString([], { dateStyle: 'full', timeStyle: 'long' });
  // A date that cannot be read has no ISO form.
  const known = Number.isNaN(date.getTime()) ? {} : { datetime: date.toISOString() };
  return make('time', { title, ...known }, text);
}

/** Sends JSON to a server of the page. */
export function postJson(url: string, body: object): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
}

/** Shows a state as a coloured badge. @param kind A class of the badge. */
export function showBadge(badge: HTMLElement, text: string, kind: string): void {
  badge.textContent = text;
  badge.className = `badge ${kind}`;
}

/**
 * Updates the children of `parent` to show the items in order. Keeps the elements of items that stay, and with them the
 * focus and the selection.
 *
 * @param render Returns the element of an item: the present element, updated, or a new one.
 */
export function reconcile<Item>(
  parent: HTMLElement,
  items: readonly Item[],
  keyOf: (item: Item) => string,
  render: (item: Item, present: HTMLElement | undefined) => HTMLElement,
): void {
  const children = new Map(
    [...parent.children].map((child) => [(child as HTMLElement).dataset['key'], child]),
  );
  items.forEach((item, index) => {
    const key = keyOf(item);
    const present = children.get(key) as HTMLElement | undefined;
    const element = render(item, present);
    element.dataset['key'] = key;
    if (present && present !== element) present.replaceWith(element);
    children.delete(key);
    if (parent.children[index] !== element) parent.insertBefore(element, parent.children[index] ?? null);
  });
  for (const removed of children.values()) removed.remove();
}

/**
 * Returns the present element if it was made from the same facts, else a new one.
 *
 * @param facts The content of the element, without values that change continuously, such as ages.
 */
export function remake(
  present: HTMLElement | undefined,
  facts: object,
  makeNew: () => HTMLElement,
): HTMLElement {
  const text = JSON.stringify(facts);
  if (present?.dataset['facts'] === text) return present;
  const element = makeNew();
  element.dataset['facts'] = text;
  return element;
}
