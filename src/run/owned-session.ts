import type { BrowserPool } from '../service/browser-pool.js';
import { holdLease } from '../service/held-leases.js';
import { giveBack } from '../service/release.js';
import type { BrowserSession } from '../service/wire.js';
import type { ReleaseChoice } from './options.js';
import type { Recorder } from './recorder.js';
import type { Released } from './run.js';

/** A granted browser with the debt of its release. From the grant on there is exactly one of these, and one holder. */
export class OwnedSession {
  readonly session: BrowserSession;

  readonly #pool: BrowserPool;
  readonly #recorder: Recorder;
  readonly #letGo: () => void;
  #released: Promise<Released> | undefined;

  constructor(pool: BrowserPool, session: BrowserSession, recorder: Recorder, watch: boolean) {
    this.session = session;
    this.#pool = pool;
    this.#recorder = recorder;
    this.#letGo = holdLease(pool, session.session_id, { watch });
  }

  /**
   * Gives the browser back, once, within `timeout` ms, and tells of it. Never rejects: what can't be given back is
   * reported.
   */
  release(choice: ReleaseChoice, timeout: number): Promise<Released> {
    this.#released ??= this.#recorder
      .time('release', () => this.#release(choice, timeout))
      .finally(() => this.#letGo());
    return this.#released;
  }

  async #release(choice: ReleaseChoice, timeout: number): Promise<Released> {
    if (choice === 'leave') return 'left';
    const { session_id: sessionId } = this.session;
    const about = { pool: this.#pool.idOrName, sessionId };
    try {
      const reuse = choice === 'reuse';
      const end = await giveBack(this.#pool, sessionId, { reuse, timeout });
      const released = reuse && end === 'released' ? 'reused' : 'destroyed';
      this.#recorder.tell({ type: 'released', ...about, released });
      return released;
    } catch (error) {
      this.#recorder.cleanupErrors.push(error as Error);
      this.#recorder.tell({ type: 'release-failed', ...about, error: error as Error });
      return 'failed';
    }
  }
}
