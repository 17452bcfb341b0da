import type { BrowserPool } from '../service/browser-pool.js';
import { holdLease } from '../service/held-leases.js';
import { countersOf } from '../service/pool-stats.js';
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
  readonly #count: (released: Released) => void;
  #released: Promise<Released> | undefined;

  constructor(pool: BrowserPool, session: BrowserSession, recorder: Recorder, watch: boolean) {
    this.session = session;
    this.#pool = pool;
    this.#recorder = recorder;
    recorder.lease.sessionId = session.session_id;
    this.#letGo = holdLease(pool, session.session_id, { watch });
    this.#count = countersOf(pool).countLease();
  }

  /**
   * Gives the browser back, once, within `timeout` ms, and tells of it. Never rejects: what can't be given back is
   * reported.
   */
  release(choice: ReleaseChoice, timeout: number): Promise<Released> {
    this.#released ??= this.#release(choice, timeout).finally(() => this.#letGo());
    return this.#released;
  }

  async #release(choice: ReleaseChoice, timeout: number): Promise<Released> {
    const released = choice === 'leave' ? 'left' : await this.#giveBack(choice === 'reuse', timeout);
    this.#count(released);
    return released;
  }

  async #giveBack(reuse: boolean, timeout: number): Promise<Released> {
    const { session_id: sessionId } = this.session;
    const about = { pool: this.#pool.idOrName, sessionId };
    try {
      const end = await this.#recorder.time('release', () =>
        giveBack(this.#pool, sessionId, { reuse, timeout }),
      );
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
