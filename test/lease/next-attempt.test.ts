import { describe, expect, it } from 'vitest';
import {
  nextAttempt,
  type AttemptFacts,
  type NextAttempt,
  type Outcome,
} from '../../src/lease/next-attempt.js';
import { PoolConnectionError, PoolResponseError, PoolServiceError } from '../../src/shared/service-errors.js';

const alone: AttemptFacts = {
  hasOther: false,
  isNextRound: false,
  isOtherSlow: false,
  failoverAfter: 10_000,
  retriesLeft: 5,
  connectsLeft: 1,
  unknowns: 1,
  brokenGrants: 1,
  hasName: false,
  backoff: 250,
};
const several: AttemptFacts = { ...alone, hasOther: true };

const answer = (status: number, code = 'some_code') =>
  new PoolServiceError({ status, code, message: 'a message' });
const lost = new PoolConnectionError('a message', 'ERR_POOL_NO_RESPONSE');
const unreadable = new PoolResponseError('a message', 200);

const FAIL: NextAttempt = { fail: true };
const AT_ONCE: NextAttempt = { again: 0, isRetry: false };
const PACED: NextAttempt = { again: 0, isRetry: true };
const BACKOFF: NextAttempt = { again: 250, isRetry: true };
const RETURN: NextAttempt = { nextPool: 'and return', isRetry: false };
const NOT_AGAIN: NextAttempt = { nextPool: 'for good', isRetry: false };

describe('what follows an outcome, with one pool and if another one can be asked', () => {
  it.each<[string, Outcome, NextAttempt, NextAttempt]>([
    ['none after the requested wait', { kind: 'none', hasWaited: true }, AT_ONCE, AT_ONCE],
    ['none at once', { kind: 'none' }, BACKOFF, BACKOFF],
    ['refused because none is available', { kind: 'unavailable', error: answer(409) }, BACKOFF, BACKOFF],
    [
      'the same after the requested wait',
      { kind: 'unavailable', error: answer(408), hasWaited: true },
      AT_ONCE,
      AT_ONCE,
    ],
    [
      'a full service, which the gate paces',
      { kind: 'unavailable', error: answer(429), isPaced: true },
      PACED,
      PACED,
    ],
    ['an outage', { kind: 'unavailable', error: answer(503), isOutage: true, isPaced: true }, PACED, RETURN],
    [
      'a limit of requests',
      { kind: 'unavailable', error: answer(429), isOutage: true, isPaced: true },
      PACED,
      PACED,
    ],
    [
      'a long pause',
      { kind: 'unavailable', error: answer(429), isPaced: true, retryAfter: 20_000 },
      PACED,
      RETURN,
    ],
    [
      'a short pause',
      { kind: 'unavailable', error: answer(429), isPaced: true, retryAfter: 5000 },
      PACED,
      PACED,
    ],
    ['the first lost answer', { kind: 'unknown', error: lost }, BACKOFF, RETURN],
    ['a success that can not be read', { kind: 'unknown', error: unreadable }, FAIL, RETURN],
    [
      'a broken response whose browser was released',
      { kind: 'released', error: unreadable },
      BACKOFF,
      BACKOFF,
    ],
    ['a wrong token', { kind: 'refused', error: answer(401) }, FAIL, FAIL],
    ['a permission that is missing', { kind: 'refused', error: answer(403, 'forbidden') }, FAIL, FAIL],
    ['a used-up plan', { kind: 'refused', error: answer(403, 'plan_limit_reached') }, FAIL, NOT_AGAIN],
    ['a required payment', { kind: 'refused', error: answer(402) }, FAIL, NOT_AGAIN],
    ['an option that the pool can not satisfy', { kind: 'unfit', error: answer(400) }, FAIL, NOT_AGAIN],
    ['a service that was never reached', { kind: 'unreached', error: lost }, FAIL, NOT_AGAIN],
    ['no browser for failoverAfter', { kind: 'late' }, FAIL, RETURN],
    ['an outage that other calls wait for', { kind: 'closed', error: answer(503) }, FAIL, RETURN],
    ['a browser that could not be reached', { kind: 'unconnected', error: lost }, AT_ONCE, AT_ONCE],
  ])('%s', (_what, outcome, one, other) => {
    expect(nextAttempt(outcome, alone)).toEqual(one);
    expect(nextAttempt(outcome, several)).toEqual(other);
  });
});

it.each<[string, Outcome, Partial<AttemptFacts>, NextAttempt]>([
  ['the second lost answer of a call', { kind: 'unknown', error: lost }, { unknowns: 2 }, FAIL],
  [
    'the second success that can not be read',
    { kind: 'unknown', error: unreadable },
    { unknowns: 2, isOtherSlow: true },
    FAIL,
  ],
  [
    'the second lost answer, while another pool is slow',
    { kind: 'unknown', error: lost },
    { unknowns: 2, isOtherSlow: true },
    NOT_AGAIN,
  ],
  [
    'an outage without retries, while another pool is slow',
    { kind: 'unavailable', error: answer(503), isOutage: true, isPaced: true },
    { isNextRound: true, retriesLeft: 0, isOtherSlow: true },
    NOT_AGAIN,
  ],
  ['the second broken response', { kind: 'released', error: unreadable }, { brokenGrants: 2 }, FAIL],
  [
    'a broken response to a request with a name',
    { kind: 'released', error: unreadable },
    { hasName: true },
    FAIL,
  ],
  [
    'the last browser of connectAttempts',
    { kind: 'unconnected', error: lost },
    { connectsLeft: 0 },
    NOT_AGAIN,
  ],
  ['none at once, without retries', { kind: 'none' }, { retriesLeft: 0 }, FAIL],
  ['none after the wait, without retries', { kind: 'none', hasWaited: true }, { retriesLeft: 0 }, AT_ONCE],
  [
    'an outage in a further round',
    { kind: 'unavailable', error: answer(503), isOutage: true, isPaced: true },
    { isNextRound: true },
    { nextPool: 'and return', isRetry: true },
  ],
  [
    'an outage in a further round, without retries',
    { kind: 'unavailable', error: answer(503), isOutage: true, isPaced: true },
    { isNextRound: true, retriesLeft: 0 },
    FAIL,
  ],
])('with several pools, after %s', (_what, outcome, facts, next) => {
  expect(nextAttempt(outcome, { ...several, ...facts })).toEqual(next);
});
