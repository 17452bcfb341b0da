import type { AcquireEvent } from '../../src/lease/acquire-events.js';
import type { AcquirePlan } from '../../src/lease/acquire-plan.js';
import { acquireSession } from '../../src/lease/acquire-session.js';
import { checkRetryOptions } from '../../src/lease/backoff.js';
import type { RetryOptions } from '../../src/lease/retry-rules.js';
import type { BrowserSession } from '../../src/service/wire.js';
import { BrowserPool } from '../../src/service/browser-pool.js';
import { FakeService, session, type Answer, type SeenRequest } from '../support/fake-service.js';
import { expectNoSecret } from '../service/support.js';

export const GRANT: Answer = { status: 200, json: session() };
export const NONE: Answer = { status: 204 };

/** Waits as long as it was asked to, and a bit, before it answers. */
export function waitAsAsked(answer: Exclude<Answer, (...args: never[]) => unknown>): Answer {
  return (response, { body }) => {
    const wait = Number(body?.['acquire_timeout_seconds'] ?? 1) * 1000 + 50;
    setTimeout(() => {
      response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers });
      response.end(answer.json === undefined ? '' : JSON.stringify(answer.json));
    }, wait);
  };
}

export interface Outcome {
  session?: BrowserSession;
  // The tests look at the fields of whatever error came.
  error?: Error & Record<string, unknown>;
  events: AcquireEvent[];
  requests: SeenRequest[];
  released: unknown[];
  /** Milliseconds until the call settled. */
  elapsed: number;
}

type Plan = Partial<Omit<AcquirePlan, 'retry'>> & { retry?: RetryOptions };

/** One acquire loop against a service with these answers, and what became of it when all that it owed is paid. */
export async function acquireWith(answers: Answer[], { retry, ...plan }: Plan = {}): Promise<Outcome> {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  service.script('acquire', ...answers);
  const events: AcquireEvent[] = [];
  const started = performance.now();
  const settled = await acquireSession(pool, {
    request: {},
    acquireTimeout: 60_000,
    // Long, so that an answer of a busy machine still counts as given at once.
    pollTimeout: 10_000,
    retry: checkRetryOptions({ minTimeout: 10, maxTimeout: 50, ...retry }),
    signal: new AbortController().signal,
    onEvent: (event) => events.push(event),
    ...plan,
  }).then(
    (session) => ({ session }),
    (error: Error & Record<string, unknown>) => ({ error }),
  );
  const elapsed = performance.now() - started;
  await pool.close();
  for (const shown of [settled, events]) expectNoSecret(shown);
  if ('error' in settled) expectNoSecret(settled.error);
  return { ...settled, events, requests: service.of('acquire'), released: service.released, elapsed };
}

/** The seconds that each request asked to wait. */
export function waits({ requests }: Outcome): unknown[] {
  return requests.map(({ body }) => body?.['acquire_timeout_seconds']);
}
