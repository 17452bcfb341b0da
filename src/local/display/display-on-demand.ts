import type { CheckedSettings } from '../options/check-pools.js';
import { lacksDisplay } from './find-xvfb.js';
import { VirtualDisplay, type Screen } from './virtual-display.js';

/** Of a session without a viewport (interface: Viewport rules). */
const DEFAULT_SIZE = { width: 1920, height: 1080 };

/** Where the windows of a local pool's browsers open: on this session's screen, or on one made for the first of them. */
export class DisplayOnDemand {
  readonly #pools: readonly CheckedSettings[];
  #display: Promise<VirtualDisplay> | undefined;

  constructor(pools: readonly CheckedSettings[]) {
    this.#pools = pools;
  }

  /** The screen to start a browser of this pool with; nothing when it needs none, or there is one already. */
  async screenFor({ headless }: CheckedSettings): Promise<Screen | undefined> {
    if (headless || !lacksDisplay()) return undefined;
    this.#display ??= VirtualDisplay.start(this.#size()).catch((error: unknown) => {
      this.#display = undefined;
      throw error;
    });
    return await this.#display;
  }

  async close(): Promise<void> {
    const display = await this.#display?.catch(() => undefined);
    await display?.close();
  }

  /** As large as the largest window. */
  #size() {
    const windows = this.#pools.filter(({ headless }) => !headless);
    const sizes = windows.map(({ viewport = DEFAULT_SIZE }) => viewport);
    return {
      width: Math.max(...sizes.map(({ width }) => width)),
      height: Math.max(...sizes.map(({ height }) => height)),
    };
  }
}
