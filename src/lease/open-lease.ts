import type { Connector } from '../connect/connector.js';
import { INTERNALS } from '../service/pool-internals.js';
import { LinkedAbort } from '../shared/abort.js';
import { ConnectError } from '../shared/lease-errors.js';
import { ConnectedLease } from './connected-lease.js';
import type { LeaseCall } from './lease-call.js';
import { Lease } from './lease.js';
import type { FailedRun } from './run.js';

/**
 * Acquires a browser and connects to it. A browser that can't be reached is released for destruction, and another one is
 * leased. After a failure nothing stays leased, and the call has ended.
 */
export async function openLease<Handles>(
  call: LeaseCall,
  connector: Connector<Handles>,
): Promise<ConnectedLease<Handles>> {
  const { signal, abort, settings } = call;
  let last: Pick<FailedRun, 'session' | 'released'> = {};
  const connect = async (lease: Lease) => {
    try {
      return await ConnectedLease.open(lease, connector);
    } catch (error) {
      last = await giveUp(lease);
      if (!(error instanceof ConnectError) || lease.attempt >= settings.connectAttempts) throw error;
      return undefined;
    }
  };
  return endOnFailure(
    call,
    () => last,
    async () => {
      signal.throwIfAborted();
      if (settings.artifacts) await prepareFolder(settings.artifacts.folder);
      prepareConnect(call, connector).catch((error: unknown) => abort.abort(error));
      return withDeadline(call, async (deadline) => {
        for (let attempt = 1; ; attempt++) {
          const connected = await connect(await Lease.acquire(call, deadline, attempt));
          if (connected) return connected;
        }
      });
    },
  );
}

/** Acquires a browser without connecting to it. After a failure the call has ended. */
export async function acquireLease(call: LeaseCall): Promise<Lease> {
  return endOnFailure(
    call,
    () => ({}),
    () => withDeadline(call, (deadline) => Lease.acquire(call, deadline, 1)),
  );
}

async function withDeadline<T>(call: LeaseCall, work: (deadline: LinkedAbort) => Promise<T>): Promise<T> {
  const deadline = new LinkedAbort(call.signal, call.settings.acquireTimeout);
  try {
    return await work(deadline);
  } finally {
    deadline.dispose();
  }
}

async function endOnFailure<T>(
  call: LeaseCall,
  last: () => Pick<FailedRun, 'session' | 'released'>,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const replayStatus = call.settings.replays === 'off' ? 'off' : 'none';
    call.end({ ...last(), replays: [], replayStatus, ...call.counts }, { error });
    throw error;
  }
}

/**
 * Opens a connection for the WebSocket and imports the library while the acquire request waits. The import keeps the
 * process busy, so it starts after the request is sent. A missing library aborts the call.
 */
async function prepareConnect({ pool }: LeaseCall, connector: Connector): Promise<void> {
  const { service } = pool[INTERNALS].client;
  await service.connected();
  service.spare.prepare();
  await connector.load();
}

/** Before anything is sent: a folder that can't be written must not cost a lease. */
async function prepareFolder(folder: string): Promise<void> {
  const files = await import('./artifact-files.js');
  await files.prepareFolder(folder);
}

/** Releases a browser that could not be reached. */
async function giveUp(lease: Lease): Promise<Pick<FailedRun, 'session' | 'released'>> {
  lease.replays?.stop();
  const released = lease.release('destroy');
  lease.call.pool[INTERNALS].background.track(released);
  return { session: lease.session, released: await released };
}
