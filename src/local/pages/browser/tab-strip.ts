import type { LiveTab } from '../messages.js';
import { byId, make, reconcile } from './dom.js';

/** The pages of the browser, to choose from. */
export class TabStrip {
  readonly #strip = byId('tabs');
  readonly #onChoose: (id: string) => void;

  constructor(onChoose: (id: string) => void) {
    this.#onChoose = onChoose;
    this.#strip.addEventListener('keydown', (event) => this.#onKey(event));
  }

  show(tabs: readonly LiveTab[], current: string | undefined): void {
    reconcile(
      this.#strip,
      tabs,
      ({ id }) => id,
      ({ id, title, url }, before) => {
        const tab = before ?? this.#tab(id);
        tab.firstChild!.textContent = title || url || 'New page';
        tab.title = url;
        tab.setAttribute('aria-selected', String(id === current));
        tab.tabIndex = id === current ? 0 : -1;
        return tab;
      },
    );
  }

  #tab(id: string): HTMLElement {
    const tab = make('button', { role: 'tab' }, make('span'));
    tab.addEventListener('click', () => this.#onChoose(id));
    return tab;
  }

  #onKey({ key }: KeyboardEvent): void {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (by === undefined) return;
    const tabs = [...this.#strip.children] as HTMLElement[];
    const next = tabs[tabs.indexOf(document.activeElement as HTMLElement) + by];
    next?.focus();
    next?.click();
  }
}
