import type { CdpConnection } from '../browser/cdp-connection.js';
import { startScreencast } from '../browser/start-screencast.js';

/** Longest side of a frame, in pixels. */
const LARGEST = 1280;

const JPEG = { format: 'jpeg', quality: 70 };
const FRAME_FORMAT = { ...JPEG, maxWidth: LARGEST, maxHeight: LARGEST };

/** Intervals without a frame after which a page counts as still. */
const STILL = 2;

/** The screencast of one page. */
export class RecordedPage {
  /** Chromium shows it: pages behind others send no frames. */
  isVisible = false;
  readonly #connection: CdpConnection;
  readonly #session: string;
  readonly #interval: number;
  readonly #timers = new Set<NodeJS.Timeout>();
  #due = 0;
  #still: NodeJS.Timeout | undefined;

  /** @param interval Milliseconds between frames. */
  constructor(connection: CdpConnection, session: string, interval: number) {
    this.#connection = connection;
    this.#session = session;
    this.#interval = interval;
  }

  /** Sends a command to the page. One that fails concerns a page that is going away. */
  send(method: string, params: object = {}): void {
    this.#connection.ask(method, params, this.#session).catch(() => {});
  }

  /** A JPEG picture of what the page shows now; it comes late, or never, from a page that is busy or hangs. */
  async picture(): Promise<Buffer> {
    const { data } = await this.#connection.ask('Page.captureScreenshot', JPEG, this.#session);
    return Buffer.from(String(data), 'base64');
  }

  /** Begins the screencast anew: its first frame comes at once, even when nothing moves. */
  restart(): void {
    this.send('Page.stopScreencast');
    const ask = (method: string, cast: object) => this.#connection.ask(method, cast, this.#session);
    startScreencast(ask, FRAME_FORMAT).catch(() => {});
  }

  /**
   * Asks for the next frame when it is due: Chromium holds its frames back until then, and is spared the work. Those
   * that it held back are lost, and with them, perhaps, what the page shows from now on: hence the new beginning when no
   * frame follows.
   */
  acknowledge(frame: unknown): void {
    clearTimeout(this.#still);
    const now = performance.now();
    const wait = Math.max(0, this.#due - now);
    this.#due = now + wait + this.#interval;
    this.#after(wait, () => {
      this.send('Page.screencastFrameAck', { sessionId: frame });
      if (wait > 0) this.#still = this.#after(STILL * this.#interval + 50, () => this.restart());
    });
  }

  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }

  #after(milliseconds: number, call: () => void): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      call();
    }, milliseconds);
    this.#timers.add(timer);
    return timer;
  }
}
