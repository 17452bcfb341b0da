import { onTestFinished, vi } from 'vitest';
import type { BrowserSession, FailedRun, RunEvent, RunOptions } from '../../src/index.js';
import { clock } from '../../src/shared/clock.js';
import { expectNoSecrets } from '../support/collected.js';
import { watchTimers } from '../support/fake-clock.js';
import { reply, type Answer, type SeenRequest } from '../support/fake-service.js';
import { PlayedLease } from '../support/played-lease.js';

type Played = Extract<Answer, (...request: never[]) => unknown>;

/** Answer of `acquireWith`: a browser that can be reached. */
export const GRANT: Answer = { status: 200 };
export const NONE: Answer = { status: 204 };

/** A timeout in ms that elapses only when a test says so. */
export const LONG = 7_200_000;

export interface Outcome {
  session?: BrowserSession;
  // The tests check the fields of any error.
  error?: Error & Record<string, unknown>;
  run: FailedRun | undefined;
  /** Only those about acquiring. */
  events: RunEvent[];
  requests: SeenRequest[];
  /** Without the browser of the call, which it leaves leased. */
  released: unknown[];
}

const ACQUIRING = /^(queued|acquiring|waiting|outcome-unknown|grant-orphaned|released|release-failed)$/;

/**
 * Leases one browser from a service with these answers, and waits for all releases.
 *
 * @param onSettled Called when the call has settled, before the wait for the releases.
 */
export async function acquireWith(
  answers: Answer[],
  { retry, ...options }: RunOptions = {},
  onSettled = () => {},
): Promise<Outcome> {
  await using played = await PlayedLease.start();
  const grant: Answer = { status: 200, json: played.session() };
  played.service.script('acquire', ...answers.map((answer) => (answer === GRANT ? grant : answer)));
  const { value, run, ...failure } = await played.run(({ session }) => session, {
    acquireTimeout: LONG,
    // Long, so that a response on a busy machine still counts as early.
    pollTimeout: 10_000,
    connectTimeout: LONG,
    retry: { minTimeout: 1, maxTimeout: 5, ...retry },
    release: 'leave',
    replays: 'off',
    ...options,
  });
  onSettled();
  await played.pool.close();
  const events = played.events.filter(({ type }) => ACQUIRING.test(type));
  expectNoSecrets(failure.error, ...events);
  const settled = 'error' in failure ? failure : { session: value };
  const { service } = played;
  return { ...settled, run, events, requests: service.of('acquire'), released: service.released } as Outcome;
}

/** Returns an answer that is sent when `settle` is called, and `settle`. */
export function answerLater(answer: Answer): { late: Answer; settle: () => void } {
  let settle!: () => void;
  const settled = new Promise<void>((resolve) => (settle = resolve));
  return { late: async (...request) => settled.then(() => play(answer, ...request)), settle };
}

/** Calls `first`, and then gives an answer. */
export function after(first: () => void, answer: Answer): Answer {
  return (...request) => {
    first();
    return play(answer, ...request);
  };
}

/** Returns a function that ends the latest timeout of about `LONG`, if there is one. */
export function watchTimeouts(): () => void {
  const start = watchTimers();
  return () => {
    const latest = start.mock.calls.findLast(([, delay = 0]) => delay > LONG / 2);
    latest?.[0]();
  };
}

/** Returns a function that advances the library's clock by some milliseconds until the end of the test. */
export function useClock(): (milliseconds: number) => void {
  const { now } = clock;
  let skipped = 0;
  const advanced = vi.spyOn(clock, 'now').mockImplementation(() => now() + skipped);
  onTestFinished(() => advanced.mockRestore());
  return (milliseconds) => void (skipped += milliseconds);
}

function play(answer: Answer, ...[response, request]: Parameters<Played>) {
  return typeof answer === 'function' ? answer(response, request) : reply(response, answer);
}
