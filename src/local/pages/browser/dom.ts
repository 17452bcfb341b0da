/** The element with this id and of this class, which the page's body has. */
export function byId(id: string): HTMLElement;
export function byId<E extends HTMLElement>(id: string, kind: new () => E): E;
export function byId(id: string, kind: new () => HTMLElement = HTMLElement): HTMLElement {
  const element = document.getElementById(id);
  if (element instanceof kind) return element;
  throw new Error(`There is no #${id} in this page.`);
}

/** Makes an element. Text becomes text: nothing that a browser or a page said is ever read as markup. */
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

/** Shows a state as a coloured badge; `kind` is a class of the badge. */
export function showBadge(badge: HTMLElement, text: string, kind: string): void {
  badge.textContent = text;
  badge.className = `badge ${kind}`;
}

/**
 * Makes the children of `parent` those of the items, in order. The element of an item that stays is kept, and with it
 * the focus and what a person has selected.
 */
export function reconcile<Item>(
  parent: HTMLElement,
  items: readonly Item[],
  keyOf: (item: Item) => string,
  render: (item: Item, before: HTMLElement | undefined) => HTMLElement,
): void {
  const present = new Map(
    [...parent.children].map((child) => [(child as HTMLElement).dataset['key'], child]),
  );
  items.forEach((item, index) => {
    const key = keyOf(item);
    const before = present.get(key) as HTMLElement | undefined;
    const element = render(item, before);
    element.dataset['key'] = key;
    if (before && before !== element) before.replaceWith(element);
    present.delete(key);
    if (parent.children[index] !== element) parent.insertBefore(element, parent.children[index] ?? null);
  });
  for (const gone of present.values()) gone.remove();
}

/**
 * The element as it is, when it was made from the same facts; else a new one. Ages and links may be left out of the
 * facts: the one goes on by itself, the other stays good.
 */
export function remake(
  before: HTMLElement | undefined,
  facts: object,
  makeNew: () => HTMLElement,
): HTMLElement {
  const text = JSON.stringify(facts);
  if (before?.dataset['facts'] === text) return before;
  const element = makeNew();
  element.dataset['facts'] = text;
  return element;
}
