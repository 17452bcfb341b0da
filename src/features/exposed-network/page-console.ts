import type { CdpClient } from '../../connect/cdp-client.js';
import type { Targets } from './targets.js';

/** Number of texts that the consoles of pages show. */
const MOST_WARNINGS = 1000;

/** A fault of a request, which the console of its page explains. */
export class ShownError extends Error {}

/** The consoles of pages and workers. */
export class PageConsole {
  readonly #cdp: CdpClient;
  readonly #targets: Targets;
  readonly #warned = new Set<string>();

  constructor(cdp: CdpClient, targets: Targets) {
    this.#cdp = cdp;
    this.#targets = targets;
  }

  /** Shows a text once. */
  async warn(frameId: string, text: string): Promise<void> {
    if (this.#warned.has(text) || this.#warned.size >= MOST_WARNINGS) return;
    this.#warned.add(text);
    const expression = `console.warn(${JSON.stringify(`exposeNetwork: ${text}`)})`;
    const target = await this.#targets.containing(frameId);
    // It may be closed in the meantime.
    if (target) await this.#cdp.send('Runtime.evaluate', { expression }, target.sessionId).catch(() => {});
  }
}
