import { acquireSession } from './acquire-session.js';
import type { Connector } from '../connect/connector.js';
import { ConnectError } from '../shared/lease-errors.js';
import { Deadline, LinkedAbort } from '../shared/abort.js';

import { trackWork } from '../service/background.js';
import { CONNECTED, type BrowserPool } from '../service/browser-pool.js';
import { beginReplays } from './begin-replays.js';
import { Lease } from './lease.js';
import { NestedWait } from './nesting.js';
import { openLink } from './open-link.js';
import { OwnedSession } from './owned-session.js';
import { Recorder } from './recorder.js';
import { rememberRun, type FailedRun } from './run.js';
import type { Settings } from './settings.js';

/**
 * Leases a browser and connects to it. A browser that can't be reached is given back as bad, and another one leased.
 * On failure nothing stays leased.
 */
export async function openLease<Handles>(
  pool: BrowserPool,
  connector: Connector<Handles>,
  settings: Settings,
): Promise<Lease<Handles>> {
  const opening = new Opening(pool, connector, settings);
  try {
    return await opening.run();
  } catch (error) {
    rememberRun(error, opening.failedRun);
    throw error;
  }
}

class Opening<Handles> {
  readonly #pool: BrowserPool;
  readonly #connector: Connector<Handles>;
  readonly #settings: Settings;
  readonly #recorder: Recorder;
  readonly #abort: LinkedAbort;
  readonly #acquireDeadline: Deadline;
  /** What is known of the last lease, once it is over. */
  #over: Pick<FailedRun, 'session' | 'released'> = {};

  constructor(pool: BrowserPool, connector: Connector<Handles>, settings: Settings) {
    this.#pool = pool;
    this.#connector = connector;
    this.#settings = settings;
    this.#recorder = new Recorder(pool.idOrName, settings.onEvent);
    this.#abort = new LinkedAbort(settings.signal);
    this.#acquireDeadline = new Deadline(settings.acquireTimeout);
  }

  get failedRun(): FailedRun {
    const { attempts, unknownOutcomes, timings, cleanupErrors } = this.#recorder;
    const replayStatus = this.#settings.replays === 'off' ? 'off' : 'none';
    return { ...this.#over, replays: [], replayStatus, attempts, unknownOutcomes, timings, cleanupErrors };
  }

  async run(): Promise<Lease<Handles>> {
    const { signal } = this.#abort;
    signal.throwIfAborted();
    this.#loadLibrary().catch((error: unknown) => this.#abort.abort(error));
    try {
      for (let attempt = 1; ; attempt++) {
        this.#recorder.lease = { attempt };
        const owned = await this.#acquire();
        this.#recorder.tell({ type: 'acquired', session: owned.session, attempt });
        const lease = await this.#connect(owned, attempt);
        if (lease) return lease;
      }
    } catch (error) {
      this.#abort.dispose();
      throw error;
    }
  }

  /**
   * Imports the automation library while a browser is waited for: that keeps the process busy, so not before the request
   * is on its way. One that is missing ends the wait: what comes of it could not be used.
   */
  async #loadLibrary(): Promise<void> {
    await this.#pool[CONNECTED]();
    await this.#connector.load();
  }

  async #acquire(): Promise<OwnedSession> {
    const { name, tags, startUrl: start_url, pollTimeout, retry, watch } = this.#settings;
    const nested = NestedWait.begin(this.#pool);
    try {
      return await this.#recorder.time('acquire', async () => {
        const session = await acquireSession(this.#pool, {
          request: { ...(name && { name }), ...(tags && { tags }), ...(start_url && { start_url }) },
          acquireTimeout: this.#acquireDeadline.remaining,
          pollTimeout,
          retry,
          signal: this.#abort.signal,
          onEvent: (event) => {
            this.#recorder.tell(event);
            if (nested && event.type === 'acquiring') this.#endDeadlock(nested);
          },
          // Of the whole call: each lease that it tries must not bring another one of unknown fate.
          unknownOutcomes: this.#recorder.unknownOutcomes,
          note: nested?.where,
          skipsLine: nested !== undefined,
        });
        return new OwnedSession(this.#pool, session, this.#recorder, watch);
      });
    } finally {
      nested?.end();
    }
  }

  #endDeadlock(nested: NestedWait): void {
    nested.deadlock().then(
      (error) => error && this.#abort.abort(error),
      // Without the pool's counts, the time limit ends the wait.
      () => {},
    );
  }

  /** The lease, or `undefined` when the browser could not be reached and another may be tried. */
  async #connect(owned: OwnedSession, attempt: number): Promise<Lease<Handles> | undefined> {
    const { connectAttempts, releaseTimeout } = this.#settings;
    const { session } = owned;
    const parts = {
      pool: this.#pool,
      settings: this.#settings,
      recorder: this.#recorder,
      abort: this.#abort,
    };
    const replays = beginReplays(session, parts);
    try {
      const link = await openLink(session, { ...parts, connector: this.#connector });
      return new Lease({ ...parts, owned, link, replays, attempt });
    } catch (error) {
      replays?.stop();
      const released = owned.release('destroy', releaseTimeout);
      trackWork(this.#pool, released);
      this.#over = { session, released: await released };
      if (!(error instanceof ConnectError) || attempt >= connectAttempts) throw error;
      return undefined;
    }
  }
}
