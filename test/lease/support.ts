import type { BrowserSession, RunEvent } from '../../src/index.js';
import { acquireSession } from '../../src/lease/acquire.js';
import { LeaseCall } from '../../src/lease/lease-call.js';
import { readLeaseOptions, sessionLeaseOptions, type SessionLeaseOptions } from '../../src/lease/options.js';
import { BrowserPool } from '../../src/service/browser-pool.js';
import { LinkedAbort } from '../../src/shared/abort.js';
import { FakeService, session, type Answer, type SeenRequest } from '../support/fake-service.js';
import { expectNoSecret } from '../service/support.js';

export const GRANT: Answer = { status: 200, json: session() };
export const NONE: Answer = { status: 204 };

export interface Outcome {
  session?: BrowserSession;
  // The tests check the fields of any error.
  error?: Error & Record<string, unknown>;
  events: RunEvent[];
  requests: SeenRequest[];
  released: unknown[];
  /** Milliseconds until the call settled. */
  elapsed: number;
}

/** Acquires a session, as the first step of a call with these options. */
export async function acquire(
  pool: BrowserPool,
  options: SessionLeaseOptions = {},
  unknownAcquires = 0,
): Promise<BrowserSession> {
  const call = new LeaseCall(pool, readLeaseOptions(sessionLeaseOptions, options, { caller: 'acquire' }));
  call.unknownAcquires = unknownAcquires;
  const deadline = new LinkedAbort(call.signal, call.settings.acquireTimeout);
  try {
    return await acquireSession(call, deadline);
  } finally {
    deadline.dispose();
    call.abort.dispose();
  }
}

/** One acquire against a service with these answers, and its outcome after all releases. */
export async function acquireWith(
  answers: Answer[],
  { retry, ...options }: SessionLeaseOptions = {},
  unknownAcquires = 0,
): Promise<Outcome> {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  service.script('acquire', ...answers);
  const events: RunEvent[] = [];
  const { onEvent } = options;
  const started = performance.now();
  const acquiring = acquire(
    pool,
    {
      acquireTimeout: 60_000,
      // Long, so that a response on a busy machine still counts as early.
      pollTimeout: 10_000,
      retry: { minTimeout: 10, maxTimeout: 50, ...retry },
      ...options,
      onEvent: (event) => {
        events.push(event);
        onEvent?.(event);
      },
    },
    unknownAcquires,
  );
  const settled = await acquiring.then(
    (session) => ({ session }),
    (error: Error & Record<string, unknown>) => ({ error }),
  );
  const elapsed = performance.now() - started;
  await pool.close();
  for (const shown of [settled, events]) expectNoSecret(shown);
  if ('error' in settled) expectNoSecret(settled.error);
  return { ...settled, events, requests: service.of('acquire'), released: service.released, elapsed };
}

/** The requested wait of each request, in seconds. */
export function waits({ requests }: Outcome): unknown[] {
  return requests.map(({ body }) => body?.['acquire_timeout_seconds']);
}
