import type { CdpEvent } from '../browser/cdp-connection.js';
import type { LiveTab } from '../pages/messages.js';

/** The pages of a browser, the oldest first, kept up to date from its events. */
export class Tabs {
  readonly #tabs = new Map<string, LiveTab>();

  /** Takes in an event; true when it changed anything. */
  take({ method, params }: CdpEvent): boolean {
    if (method === 'Target.targetDestroyed') return this.#tabs.delete(String(params['targetId']));
    if (method !== 'Target.targetCreated' && method !== 'Target.targetInfoChanged') return false;
    const { targetId, type, title, url } = params['targetInfo'] as Record<string, string>;
    if (type !== 'page') return false;
    this.#tabs.set(targetId!, { id: targetId!, title: title ?? '', url: url ?? '' });
    return true;
  }

  get list(): readonly LiveTab[] {
    return [...this.#tabs.values()];
  }

  has(id: string): boolean {
    return this.#tabs.has(id);
  }

  /** The one that was opened last: most likely what goes on now goes on there. */
  get newest(): string | undefined {
    return this.list.at(-1)?.id;
  }
}
