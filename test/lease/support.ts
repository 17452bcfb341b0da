import { onTestFinished, vi } from 'vitest';
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

/**
 * One acquire against a service with these answers, and its outcome after all releases.
 *
 * @param onSettled Called when the acquire has settled, before the wait for the releases.
 */
export async function acquireWith(
  answers: Answer[],
  { retry, ...options }: SessionLeaseOptions = {},
  { unknownAcquires = 0, onSettled = () => {} }: { unknownAcquires?: number; onSettled?: () => void } = {},
): Promise<Outcome> {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  service.script('acquire', ...answers);
  const events: RunEvent[] = [];
  const { onEvent } = options;
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
  onSettled();
  await pool.close();
  for (const shown of [settled, events]) expectNoSecret(shown);
  if ('error' in settled) expectNoSecret(settled.error);
  return { ...settled, events, requests: service.of('acquire'), released: service.released };
}

/** The requested wait of each request, in seconds. */
export function waits({ requests }: Outcome): unknown[] {
  return requests.map(({ body }) => body?.['acquire_timeout_seconds']);
}

/** A timeout in ms that elapses only when a test says so. */
export const LONG = 7_200_000;

/** Returns a function that ends the latest timeout of about `LONG`, if there is one. */
export function watchTimeouts(): () => void {
  const start = vi.spyOn(globalThis, 'setTimeout');
  onTestFinished(() => start.mockRestore());
  return () => {
    const latest = start.mock.calls.findLast(([, delay = 0]) => delay > LONG / 2);
    latest?.[0]();
  };
}

/** Returns a function that advances `performance.now` by some milliseconds until the end of the test. */
export function useClock(): (milliseconds: number) => void {
  const now = performance.now.bind(performance);
  let skipped = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + skipped);
  onTestFinished(() => clock.mockRestore());
  return (milliseconds) => void (skipped += milliseconds);
}
